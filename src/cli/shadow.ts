import type { Command } from 'commander';
import type { ShadowReport } from '../contracts/rooms.ts';
import { isRecord } from '../wire/json.ts';
import { CommandFailed } from './command-failed.ts';
import { askGateway } from './running-gateway.ts';

export function registerShadowCommands(program: Command): void {
  program
    .command('shadow')
    .description('Candidate rules beside the live ones.')
    .command('report')
    .description('Compare routes, answers, cost and latency, as the running gateway has seen them.')
    .option('--config <file>', 'configuration file (default: HERMES_CONFIG, else config/hermes.yaml)')
    .option('--url <url>', "the running gateway (default: the configuration's address)")
    .option('--limit <n>', 'rows and examples', '50')
    .option('--json', 'for programs')
    .action(async (options: { config?: string; url?: string; limit: string; json?: true }) => {
      const answer = await askGateway(options, 'GET', `/admin/shadow/report?limit=${encodeURIComponent(options.limit)}`);
      if (!isRecord(answer) || !Array.isArray(answer.routes)) throw new CommandFailed('The gateway answered something that is no shadow report.');
      process.stdout.write(options.json ? `${JSON.stringify(answer, null, 2)}\n` : printReport(answer as object as ShadowReport));
    });
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
  return `${lines.join('\n')}\n`;
}

function usd(nano: number): string {
  return (nano / 1e9).toFixed(6);
}
function milliseconds(value: number | null): string {
  return value === null ? '–' : `${Math.round(value)} ms`;
}
