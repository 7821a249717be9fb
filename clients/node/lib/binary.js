// Where the program lies: in a package of its own for each system, which npm chooses by os and cpu.
import { createRequire } from 'node:module';
import { Unavailable } from './verdict.js';

const name = process.platform === 'win32' ? 'shield.exe' : 'shield';

/** The program of this package, or null where it has none for this system. */
export function packaged() {
  try {
    return createRequire(import.meta.url).resolve(`@shieldcli/shield-${process.platform}-${process.arch}/${name}`);
  } catch {
    return null;
  }
}

/** Returns the command line of a process that judges. */
export function command({ binary, policy, model, config, state, roots = [], until }) {
  const program = binary ?? packaged() ?? 'shield';
  if (typeof program !== 'string' || program === '') throw new Unavailable('binary: expected the path of a program');
  const args = ['run', '--no-action'];
  for (const [flag, value] of Object.entries({ policy, model, config, state, until })) {
    if (value != null) args.push(`--${flag}=${value}`);
  }
  return [program, [...args, ...roots.map((root) => `--root=${root}`)]];
}
