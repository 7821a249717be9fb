#!/usr/bin/env node
// The command shield: runs the program of this package.
import { spawn } from 'node:child_process';
import { packaged } from './binary.js';

const program = packaged();
if (program === null) {
  console.error(`shield: this package has no program for ${process.platform} on ${process.arch}; install it with npm's optional dependencies`);
  process.exit(2);
}
const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('error', (e) => {
  console.error(`shield: ${e.message}`);
  process.exit(2);
});
child.on('exit', (code) => process.exit(code ?? 2));
