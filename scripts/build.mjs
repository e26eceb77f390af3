// Compiles src/ and plugins/ to dist/. In a tree without the compiler (an installed package) there is nothing to build.
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const compiler = join(root, 'node_modules', '.bin', 'tsc');
if (existsSync(compiler)) {
  rmSync(join(root, 'dist'), { recursive: true, force: true });
  execFileSync(compiler, ['-p', 'tsconfig.build.json'], { cwd: root, stdio: 'inherit' });
  // npm makes the program executable when it links it, which a second build would undo: `npx hermes` runs it directly.
  chmodSync(join(root, 'dist', 'src', 'main.js'), 0o755);
  if (existsSync(join(root, 'console', 'public'))) {
    const [built, library] = [join(root, 'dist', 'console'), join(root, 'node_modules', 'uplot', 'dist')];
    cpSync(join(root, 'console', 'public'), built, { recursive: true });
    cpSync(join(library, 'uPlot.iife.min.js'), join(built, 'uplot.js'));
    cpSync(join(library, 'uPlot.min.css'), join(built, 'uplot.css'));
    cpSync(join(library, '..', 'LICENSE'), join(built, 'uplot.LICENSE'));
  }
}
