/** What `/admin/traces` tells of a trace, as far as it is printed. */
export interface TraceView {
  id: string;
  trace_id: string;
  request_id: string;
  started_at: string;
  duration_ms: number;
  status: number;
  error?: string;
  route: string;
  model: string;
  upstream?: string;
  service: string;
  session_id: string | null;
  method?: string;
  path?: string;
  tokens: { input: number; cached: number; output: number; reasoning: number };
  cost_usd: number;
  overhead_ms?: number;
  first_token_ms?: number;
  degraded?: boolean;
  degraded_from?: string;
  replayed?: boolean;
  spans: { name: string; parent: string | null; start_ms: number; duration_ms: number; attributes: Record<string, unknown> }[];
  calls: { model: string; upstream: string; outcome: string; status: number | null; error: string | null; duration_ms: number; cost_usd: number | null }[];
}

const BAR = 40;
/** What a span's line says of it; the rest is for `--json`. */
const TOLD = ['number', 'upstream', 'outcome', 'status', 'error', 'tier', 'messages', 'input_tokens', 'output_tokens', 'first_token_ms', 'tries', 'request_id'];
const CONTROL = /[\p{Cc}\u2028\u2029]/gu;

/** The head, then every step where it lies in the request's time. */
export function printTrace(view: TraceView): string {
  const { tokens } = view;
  const lines = [
    `${view.method ?? ''} ${view.path ?? ''} → ${view.status}${view.error ? ` ${view.error}` : ''} in ${milliseconds(view.duration_ms)} at ${view.started_at}`.trimStart(),
    pairs({ id: view.id, request_id: view.request_id === view.id ? undefined : view.request_id, trace_id: view.trace_id }),
    pairs({ route: view.route, model: view.model, upstream: view.upstream, service: view.service, session: view.session_id ?? undefined }),
    pairs({ tokens: `${tokens.input} in (${tokens.cached} cached), ${tokens.output} out`, cost: `${usd(view.cost_usd)} USD` }),
    pairs({
      overhead: view.overhead_ms === undefined ? undefined : milliseconds(view.overhead_ms),
      'first token': view.first_token_ms === undefined ? undefined : milliseconds(view.first_token_ms),
      degraded: view.degraded ? `from ${view.degraded_from ?? '?'}` : undefined,
      replayed: view.replayed ? 'yes' : undefined,
    }),
    '',
    ...waterfall(view),
  ];
  return `${lines.filter((line, at) => line !== '' || at === 5).join('\n')}\n`;
}

function waterfall({ spans, duration_ms }: TraceView): string[] {
  const names = spans.map(({ name, parent }) => plain(`${parent === null ? '' : '  '}${name}`));
  const width = Math.max(8, ...names.map((name) => name.length));
  return spans.map((span, at) => {
    const scale = duration_ms > 0 ? BAR / duration_ms : 0;
    const from = Math.min(BAR - 1, Math.floor(span.start_ms * scale));
    const long = Math.max(1, Math.min(BAR - from, Math.round(span.duration_ms * scale)));
    const bar = `${' '.repeat(from)}${(span.duration_ms * scale < 0.5 ? '▏' : '█').repeat(long)}`.padEnd(BAR);
    const told = TOLD.flatMap((name) => (span.attributes[name] === undefined ? [] : [`${name}=${String(span.attributes[name])}`]));
    return `${(names[at] ?? '').padEnd(width)} │${bar}│ ${milliseconds(span.duration_ms).padStart(9)}  ${plain(told.join(' '))}`.trimEnd();
  });
}

/** One trace on one line. */
export function printTraceLine(view: TraceView): string {
  const parts = [
    view.started_at,
    view.id,
    String(view.status),
    milliseconds(view.duration_ms).padStart(9),
    view.route || '-',
    view.model || '-',
    `${view.tokens.input}+${view.tokens.output} tokens`,
    `${usd(view.cost_usd)} USD`,
    view.session_id ?? '',
    view.error ?? '',
    view.degraded ? 'degraded' : '',
  ];
  return `${plain(parts.filter(Boolean).join('  '))}\n`;
}

function pairs(fields: Record<string, string | undefined>): string {
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined && value !== '')
    .map(([name, value]) => plain(`${name} ${value}`))
    .join('   ');
}

/** A session id is the caller's: it must not move the cursor or paint the terminal. */
function plain(text: string): string {
  return text.replaceAll(CONTROL, '�');
}
function milliseconds(value: number): string {
  return value >= 10_000 ? `${(value / 1000).toFixed(1)} s` : `${value.toFixed(value < 10 ? 2 : 1)} ms`;
}
function usd(value: number): string {
  return value.toFixed(6);
}
