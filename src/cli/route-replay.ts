import { resolve } from 'node:path';
import type { Command } from 'commander';
import { parseDocument } from 'yaml';
import { priceCall } from '../accounting/price.ts';
import { pricingOf } from '../accounting/pricing-of.ts';
import { configFile } from '../config/load.ts';
import type { Config } from '../contracts/config.ts';
import { parseRecorded, type RecordedCall } from '../routing/recorded-traffic.ts';
import { type ReplayReport, replay } from '../routing/replay.ts';
import { CommandFailed } from './command-failed.ts';
import { readText } from './lint-file.ts';
import { toSubject, withRules } from './route-offline.ts';

interface ReplayOptions {
  config?: string;
  traces: string;
  rules: string;
  json?: true;
}

export function registerReplayCommand(route: Command): void {
  route
    .command('replay')
    .description('Decide recorded traffic again by other rules: what would change in route, model and money.')
    .requiredOption('--traces <file>', 'a trace export with content (hermes-cli trace export, trace.capture_content), or a file with one question a line')
    .requiredOption('--rules <file>', 'the other rules: `route_rules:`, or a bare list')
    .option('--config <file>', 'configuration file (default: HERMES_CONFIG, else config/hermes.yaml)')
    .option('--json', 'for programs')
    .action(async (options: ReplayOptions) => {
      const { requests, withoutContent } = parseRecorded(readText(options.traces));
      if (requests.length === 0) throw new CommandFailed(`${options.traces}: ${nothingIn(withoutContent)}`);
      // Rules of hours decide by the time of the request.
      let now: number | undefined;
      const report = await withRules(
        { file: options.config, text: withCandidate(options) },
        async ({ rooms }, config) =>
          replay(requests, {
            config,
            live: rooms.routing.compileRules(config, config.route_rules),
            candidate: rooms.routing.compileRules(config, config.shadow?.rules ?? []),
            toSubject(request) {
              now = request.at;
              return toSubject(request);
            },
            price: (model, call) => priceOf(config, model, call),
          }),
        () => now ?? Date.now(),
      );
      process.stdout.write(
        options.json ? `${JSON.stringify({ ...report, without_content: withoutContent }, null, 2)}\n` : print(report, options, withoutContent),
      );
    });
}

export function nothingIn(withoutContent: number): string {
  return withoutContent > 0
    ? `its ${withoutContent} traces have no content; they have it where trace.capture_content was on`
    : 'there is no recorded request in it';
}

/** The configuration with the other rules as its shadow's: read and checked like those. */
function withCandidate({ config, rules }: ReplayOptions): string {
  // Of a file that is not there the option should speak, not `shadow.rules_file`.
  readText(rules);
  const document = parseDocument(readText(configFile({ file: config })));
  document.set('shadow', { rules_file: resolve(rules), sample: 0 });
  return String(document);
}

/** The mean of the model's upstreams, by weight. */
function priceOf(config: Config, id: string, { startedAt, answered, tokens }: RecordedCall): number | undefined {
  const upstreams = config.registry.models.get(id)?.upstreams ?? [];
  const serving = upstreams.some(({ weight }) => weight > 0) ? upstreams.filter(({ weight }) => weight > 0) : upstreams;
  let [sum, weights] = [0, 0];
  for (const target of serving) {
    const price = priceCall(config, pricingOf(config, target), { startedAt, answered, tokens });
    if (price === undefined) return undefined;
    sum += price * (target.weight || 1);
    weights += target.weight || 1;
  }
  return weights === 0 ? undefined : Math.round(sum / weights);
}

function print(report: ReplayReport, { rules }: ReplayOptions, withoutContent: number): string {
  const { before_nano_usd: before, after_nano_usd: after } = report;
  const skipped = [
    ...(report.explicit > 0 ? [`${report.explicit} named their model or were refused`] : []),
    ...(withoutContent > 0 ? [`${withoutContent} have no content`] : []),
  ];
  const change = before > 0 ? ` (${after >= before ? '+' : '−'}${Math.abs((100 * (after - before)) / before).toFixed(1)} %)` : '';
  return [
    `${report.decided} requests decided again by ${rules}${skipped.length > 0 ? `; ${skipped.join(', ')}` : ''}`,
    `${report.other_route} by another rule, ${report.other_model} for another model`,
    `money  ${usd(before)} → ${usd(after)} USD${change}, by the configuration's prices and the tokens of then${report.unpriced > 0 ? `; ${report.unpriced} without a price` : ''}`,
    '',
    ...report.changes.flatMap((row) => [
      `${arrow(row.from_route, row.to_route)}  ${row.requests}  ${arrow(row.from_model, row.to_model)}  ${usd(row.before_nano_usd)} → ${usd(row.after_nano_usd)} USD`,
      ...row.examples.map((text) => `  · ${shortened(text)}`),
    ]),
    '',
  ].join('\n');
}

const arrow = (from: string, to: string) => (from === to ? from : `${from} → ${to}`);
function usd(nano: number): string {
  return (nano / 1e9).toFixed(6);
}
export function shortened(text: string): string {
  const line = text.replace(/\s+/gu, ' ');
  return line.length > 100 ? `${line.slice(0, 100)}…` : line;
}
