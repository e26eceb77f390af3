import { relative } from 'node:path';
import type { Command } from 'commander';
import { createConfigReader } from '../app/read-config.ts';
import type { ArmSummary, RolloutReport, ShadowReport } from '../contracts/shadow.ts';
import { readLintSource } from '../routing/lint-source.ts';
import { replaceRules } from '../routing/rules-text.ts';
import { isRecord } from '../wire/json.ts';
import { CommandFailed } from './command-failed.ts';
import { readText } from './lint-file.ts';
import { setUpPlugins } from './quiet-house.ts';
import { askGateway } from './running-gateway.ts';
import { unifiedDiff } from './unified-diff.ts';

const CONFIG = ['--config <file>', 'configuration file (default: HERMES_CONFIG, else config/hermes.yaml)'] as const;

export function registerShadowCommands(program: Command): void {
  const shadow = program.command('shadow').description('Candidate rules beside the live ones.');
  shadow
    .command('report')
    .description('Compare routes, answers, cost and latency, as the running gateway has seen them.')
    .option(...CONFIG)
    .option('--url <url>', "the running gateway (default: the configuration's address)")
    .option('--limit <n>', 'rows and examples', '50')
    .option('--json', 'for programs')
    .action(async (options: { config?: string; url?: string; limit: string; json?: true }) => {
      const answer = await askGateway(options, 'GET', `/admin/shadow/report?limit=${encodeURIComponent(options.limit)}`);
      if (!isRecord(answer) || !Array.isArray(answer.routes)) throw new CommandFailed('The gateway answered something that is no shadow report.');
      process.stdout.write(options.json ? `${JSON.stringify(answer, null, 2)}\n` : printReport(answer as object as ShadowReport));
    });
  shadow
    .command('promote')
    .description("The diff that makes the candidate's rules the live ones; for patch or git apply. Changes nothing.")
    .option(...CONFIG)
    .option('--rules <file>', "the candidate's rules (default: rules_file of shadow, else of rollout)")
    .action(promote);
}

async function promote(options: { config?: string; rules?: string }): Promise<void> {
  const { read } = await createConfigReader({ file: options.config });
  const { config } = read();
  const rules = options.rules ?? config.shadow?.rules_file ?? config.rollout?.rules_file;
  if (rules === undefined) throw new CommandFailed('The configuration has neither shadow nor rollout: name the file with the candidate rules by --rules.');
  const before = readText(config.file);
  let after: string;
  try {
    after = replaceRules(before, readText(rules));
  } catch (cause) {
    throw cause instanceof CommandFailed ? cause : new CommandFailed(`${rules}: ${cause instanceof Error ? cause.message : 'it cannot be read'}`, { cause });
  }
  // What would be refused on load must not be handed out.
  const checked = await createConfigReader({ file: options.config, text: after });
  await setUpPlugins(checked.read(), checked.registries);
  const diff = unifiedDiff(before, after, relative(process.cwd(), config.file).replaceAll('\\', '/'));
  process.stdout.write(diff);
  process.stderr.write(diff === '' ? 'The rules are the same.\n' : `${toldChanges(before, after)}; apply it by: hermes-cli shadow promote | patch -p1\n`);
}

function toldChanges(before: string, after: string): string {
  const rules = (text: string) => new Map(readLintSource(text, undefined).rules.map((rule) => [rule.id, JSON.stringify({ ...rule, line: undefined })]));
  const [old, next] = [rules(before), rules(after)];
  const list = (what: string, ids: string[]) => (ids.length === 0 ? [] : [`${what} ${ids.join(', ')}`]);
  const parts = [
    ...list(
      'new',
      [...next.keys()].filter((id) => !old.has(id)),
    ),
    ...list(
      'changed',
      [...next.keys()].filter((id) => old.has(id) && old.get(id) !== next.get(id)),
    ),
    ...list(
      'gone',
      [...old.keys()].filter((id) => !next.has(id)),
    ),
  ];
  return parts.join('; ') || 'order or comments changed';
}

function printReport(report: ShadowReport): string {
  const { comparisons, same_route: same, answered, skipped_for_budget: skipped } = report;
  const lines = [
    `${comparisons} compared, ${same} by the same rule, ${answered} answered by the candidate, ${skipped} not answered for its budget`,
    `cost today ${report.usd_today.toFixed(6)} USD of ${report.usd_per_day ?? 'no limit'}`,
    '',
  ];
  for (const row of report.routes) {
    lines.push(
      `${row.live_route} → ${row.candidate_route}  ${row.count}`,
      `  ${row.verdict}`,
      `  model    ${row.live_model} → ${row.candidate_model}`,
      `  cost     ${usd(row.live_cost_nano_usd)} → ${usd(row.candidate_cost_nano_usd)} USD for ${row.answered} answers`,
      `  latency  ${milliseconds(row.live_latency_ms)} → ${milliseconds(row.candidate_latency_ms)} (first token ${milliseconds(row.live_first_token_ms)} → ${milliseconds(row.candidate_first_token_ms)})`,
      `  answers  ${row.similarity === null ? 'not compared' : `overlap ${row.similarity.toFixed(2)}, length ${Math.round(row.live_length ?? 0)} → ${Math.round(row.candidate_length ?? 0)}`}`,
      '',
    );
  }
  if (report.examples.length > 0) lines.push('disagreements');
  for (const { at, request_id, live_route, candidate_route, text } of report.examples) {
    lines.push(`  ${at}  ${request_id}  ${live_route} → ${candidate_route}${text === undefined ? '' : `  ${text}`}`);
  }
  if (report.rollout) lines.push(...(report.examples.length > 0 ? [''] : []), ...printRollout(report.rollout));
  return `${lines.join('\n')}\n`;
}

function printRollout(report: RolloutReport): string[] {
  const arms =
    (show: (arm: ArmSummary) => string) =>
    ({ live, candidate }: { live: ArmSummary; candidate: ArmSummary }) =>
      `${show(live)} → ${show(candidate)}`;
  const served = arms((arm) => `${arm.served} served${arm.failed > 0 ? `, ${arm.failed} failed` : ''}`);
  const cost = arms(({ cost_nano_usd }) => (cost_nano_usd === null ? '–' : usd(cost_nano_usd)));
  const latency = arms(({ latency_ms }) => milliseconds(latency_ms));
  const first = arms(({ first_token_ms }) => milliseconds(first_token_ms));
  return [
    `rollout: ${report.comparisons} compared, ${report.same_route} by the same rule; live → candidate, means a request`,
    `  ${served(report)}  cost ${cost(report)} USD  latency ${latency(report)} (first token ${first(report)})`,
    '',
    ...report.routes.flatMap((row) => [
      `${row.live_route} → ${row.candidate_route}`,
      `  ${row.verdict}`,
      `  model    ${row.live_model} → ${row.candidate_model}`,
      `  served   ${served(row)}`,
      `  cost     ${cost(row)} USD`,
      `  latency  ${latency(row)} (first token ${first(row)})`,
      '',
    ]),
    ...(report.examples.length > 0 ? ['disagreements'] : []),
    ...report.examples.map(
      ({ at, request_id, arm, live_route, candidate_route, text }) =>
        `  ${at}  ${request_id}  ${live_route} → ${candidate_route}, served by ${arm}${text === undefined ? '' : `  ${text}`}`,
    ),
  ];
}

function usd(nano: number): string {
  return (nano / 1e9).toFixed(6);
}
function milliseconds(value: number | null): string {
  return value === null ? '–' : `${Math.round(value)} ms`;
}
