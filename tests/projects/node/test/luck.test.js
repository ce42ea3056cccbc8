const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { test } = require('node:test');

test('passes the second time', () => {
  const mark = path.join(os.tmpdir(), 'luck');
  const again = fs.existsSync(mark);
  fs.writeFileSync(mark, '');
  assert.ok(again, 'the first time fails');
});
