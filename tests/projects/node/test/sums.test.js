const assert = require('node:assert');
const { describe, it, test } = require('node:test');
const { sum } = require('../sums.js');

test('of nothing is zero', () => {
  assert.strictEqual(sum(), 0);
});

describe('of two', () => {
  it('small', () => assert.strictEqual(sum(1, 2), 3));
  it('wrong (one)', () => {
    assert.strictEqual(sum(1, 2), 5);
  });
});

test('skipped', { skip: 'not on this machine' }, () => {});
