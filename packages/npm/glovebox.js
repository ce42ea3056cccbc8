#!/usr/bin/env node
// Starts the program, which lies in the package for this machine. Nothing is downloaded.
'use strict';
const { spawn } = require('child_process');
const os = require('os');

const name = `glovebox-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/glovebox`);
} catch {
  console.error(`glovebox: the package ${name} is not installed. npm leaves it out with --omit=optional, and there ` +
    'is none for other systems than Linux: install without that option, or build from source');
  process.exit(127);
}
// A terminal sends its signals to the program as well; those of other programs are passed on. They are heard
// before the program starts: it may print its first line before this process runs again.
let child = null;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']) {
  process.on(signal, () => { if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal); });
}
child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
child.on('error', (error) => {
  console.error(`glovebox: ${error.message}`);
  process.exit(126);
});
child.on('exit', (code, signal) => {
  process.exit(signal ? 128 + os.constants.signals[signal] : code);
});
