import type { Command } from 'commander';
import type { SessionViews } from '../admin/sessions.ts';
import { type MiningReport, mine, type Proposal } from '../routing/mining/mine.ts';
import { parseRecorded, type RecordedRequest } from '../routing/recorded-traffic.ts';
import { isRecord } from '../wire/json.ts';
import { CommandFailed } from './command-failed.ts';
import { readText } from './lint-file.ts';
import { toSubject, withRules } from './route-offline.ts';
import { nothingIn, shortened } from './route-replay.ts';
import { withViews } from './session.ts';

interface MineOptions {
  config?: string;
  url?: string;
  project?: string;
  sessions: string;
  least: string;
  most: string;
  json?: true;
}
const PAGE = 100;

export function registerMineCommand(route: Command): void {
  route
    .command('mine [file]')
    .description(
      'Propose keywords for what only the default takes: of a trace export with content, a file with one question a line, or of the stored sessions.',
    )
    .option('--config <file>', 'configuration file (default: HERMES_CONFIG, else config/hermes.yaml)')
    .option('--url <url>', 'the sessions of the gateway that runs there; needed for sqlite while it runs')
    .option('--project <project>', 'only sessions of this project')
    .option('--sessions <n>', 'newest sessions, at most', '500')
    .option('--least <n>', 'questions that a keyword must newly take', '3')
    .option('--most <n>', 'proposals, at most', '20')
    .option('--json', 'for programs')
    .action(async (file: string | undefined, options: MineOptions) => {
      const requests = file === undefined ? await fromSessions(options) : fromFile(file);
      const [least, most] = [whole(options.least, '--least'), whole(options.most, '--most')];
      const report = await withRules({ file: options.config }, ({ rooms }, config) => mine(rooms.routing, config, requests, { least, most, toSubject }));
      process.stdout.write(options.json ? `${JSON.stringify(report, null, 2)}\n` : print(report));
    });
}

function whole(text: string, option: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  throw new CommandFailed(`${option} takes a whole number from 1`);
}

/** What named its model says nothing about the rules. */
function fromFile(file: string): RecordedRequest[] {
  const { requests, withoutContent } = parseRecorded(readText(file));
  if (requests.length === 0) throw new CommandFailed(`${file}: ${nothingIn(withoutContent)}`);
  return requests.filter(({ route }) => route !== 'none');
}

async function fromSessions(options: MineOptions): Promise<RecordedRequest[]> {
  const requests = await withViews(options, async (views) => {
    const found: RecordedRequest[] = [];
    for (const { project, session } of await listSessions(views, options)) {
      const { requests: asked } = parseRecorded(await views.export({ project, session }));
      found.push(...asked.map((request) => ({ ...request, project })));
    }
    return found;
  });
  if (requests.length === 0) throw new CommandFailed('There is no stored session; give a file with questions, or a trace export with content.');
  return requests;
}

async function listSessions(views: SessionViews, { project, sessions }: MineOptions): Promise<{ project: string; session: string }[]> {
  const wanted = whole(sessions, '--sessions');
  const found: { project: string; session: string }[] = [];
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<SessionViews['list']>> = await views.list({
      project,
      limit: Math.min(PAGE, wanted - found.length),
      ...(cursor !== null && { cursor }),
    });
    for (const view of page.data) if (isRecord(view)) found.push({ project: String(view.project), session: String(view.session_id) });
    cursor = page.next_cursor;
  } while (cursor !== null && found.length < wanted);
  return found;
}

function print({ questions, caught, proposals }: MiningReport): string {
  const share = questions === 0 ? 0 : Math.round((100 * caught) / questions);
  const head = `${questions} questions, ${caught} of them only by the default (${share} %)`;
  if (proposals.length === 0) return `${head}\nNothing stands out: no phrase is in enough of them and belongs to one rule.\n`;
  return [head, '', ...proposals.flatMap(printProposal)].join('\n');
}

function printProposal({ rule, keywords, proposed, captured, examples, taken }: Proposal): string[] {
  return [
    `${rule ?? `a new rule (${proposed.id})`}  would newly take ${captured}`,
    ...keywords.map(({ word, questions, why }) => `  + ${word}  ${questions} questions; ${why}`),
    ...examples.map((text) => `    · ${shortened(text)}`),
    ...taken.map(({ from, questions, example }) => `  ! takes ${questions} from ${from}: ${shortened(example)}`),
    `  - ${JSON.stringify({ id: proposed.id, match: proposed.match, model: proposed.model })}`,
    '',
  ];
}
