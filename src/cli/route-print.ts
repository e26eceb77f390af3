import type { DebugRoute } from '../admin/debug-route.ts';
import type { Finding } from '../routing/lint.ts';
import type { RouteTestReport } from '../routing/route-tests.ts';

type Paint = (text: string) => string;
const painted = (code: number, coloured: boolean): Paint => (coloured ? (text) => `\u001b[${code}m${text}\u001b[0m` : (text) => text);

/** Every earlier rule in a row would bury the answer. */
const SHOWN_EARLIER = 30;

export function printDebug(route: DebugRoute, coloured: boolean): string {
  const [bold, green, dim, red] = [painted(1, coloured), painted(32, coloured), painted(2, coloured), painted(31, coloured)];
  const earlier = route.earlier.slice(-SHOWN_EARLIER);
  const hidden = route.earlier.length - earlier.length;
  const changed =
    route.model === route.model_before_cost ? '' : dim(`  instead of ${route.model_before_cost}${route.cost_rule === null ? '' : ` (${route.cost_rule})`}`);
  const { trim } = route;
  return [
    ...(hidden > 0 ? [dim(`  … ${hidden} rules before these missed, too`)] : []),
    ...earlier.map(({ rule, why }) => `${red('✗')} ${rule}  ${dim(why)}`),
    `${green('✓')} ${bold(rule(route))}  ${route.why}`,
    '',
    `model      ${bold(route.model)}${changed}`,
    ...route.upstreams.map(
      ({ upstream, weight, state, picked }) =>
        `upstream   ${picked ? green('→') : ' '} ${upstream}  weight ${weight}  ${state === 'closed' ? green(state) : red(state)}`,
    ),
    `priority   ${route.priority}`,
    `request    ${route.request.messages} messages, ${route.request.tokens} tokens`,
    `session    ${route.session.messages} messages, ${route.session.tokens} tokens`,
    'error' in trim ? `trim       ${red(trim.error)}` : `trim       budget ${trim.budget} tokens, keeps ${trim.kept} messages, drops ${trim.dropped}`,
    `tools      ${route.tools.join(', ') || 'none'}${route.unavailable_tools.length > 0 ? red(`  unavailable: ${route.unavailable_tools.join(', ')}`) : ''}`,
    '',
  ].join('\n');
}
const rule = ({ rule: id }: DebugRoute) => (id === 'none' ? 'none (the rules are skipped)' : id);

export function printFindings(findings: readonly Finding[], file: string, coloured: boolean): string {
  const [red, yellow] = [painted(31, coloured), painted(33, coloured)];
  const lines = findings.map(({ level, rule: id, line, message, code }) => {
    const place = line === undefined ? file : `${file}:${line}`;
    return `${level === 'error' ? red('error') : yellow('warning')}  ${place}  ${id === '' ? '' : `${id}: `}${message}  [${code}]`;
  });
  const errors = findings.filter(({ level }) => level === 'error').length;
  const end = findings.length === 0 ? 'nothing found' : `${errors} errors, ${findings.length - errors} warnings`;
  return [...lines, end, ''].join('\n');
}

export function printTests(report: RouteTestReport, untested: readonly string[], coloured: boolean): string {
  const [red, green] = [painted(31, coloured), painted(32, coloured)];
  const width = Math.max(4, ...report.rules.map(({ rule: id }) => id.length));
  const rows = report.rules.map(({ rule: id, questions, hit }) => {
    const share = `${Math.round((100 * hit) / questions)} %`;
    return `${id.padEnd(width)}  ${String(hit).padStart(4)} / ${String(questions).padEnd(4)}  ${hit === questions ? green(share) : red(share)}`;
  });
  return [
    `${'rule'.padEnd(width)}   hit / asked`,
    ...rows,
    ...(report.confusions.length > 0
      ? ['', 'confusions (wanted → got)', ...report.confusions.map(({ want, got, count }) => `${want} → ${got}  ${count}`)]
      : []),
    ...(report.failures.length > 0
      ? ['', 'missed', ...report.failures.map(({ question, want, got, why }) => `${red('✗')} ${question}  wanted ${want}, got ${got}: ${why}`)]
      : []),
    ...(untested.length > 0 ? ['', `no questions for: ${untested.join(', ')}`] : []),
    '',
    `${report.passed} of ${report.total} questions hit their rule`,
    '',
  ].join('\n');
}
