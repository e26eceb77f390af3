import type { LocalTool } from '../contracts/local-tool.ts';
import { problemOfSchema } from '../tools/params.ts';
import { reportIssues, toMessage } from './issues.ts';
import { formatPath } from './problems.ts';
import { localTool } from './schema-state.ts';

/** Checks what a plugin hands to `addTool`, and fills the defaults in. Throws an Error with every mistake. */
export function parseLocalTool(value: unknown): LocalTool {
  const problems: string[] = [];
  const parsed = localTool.safeParse(value, { error: toMessage });
  if (!parsed.success) reportIssues(parsed.error.issues, (path, message) => problems.push(`${formatPath(path) || 'the tool'} ${message}`));
  else if (parsed.data.parameters !== undefined) {
    const problem = problemOfSchema(parsed.data.parameters);
    if (problem !== undefined) problems.push(`parameters is no JSON Schema: ${problem}`);
  }
  if (!parsed.success || problems.length > 0) throw new Error(`addTool: ${problems.join('; ')}`);
  return { ...parsed.data, side_effects: parsed.data.side_effects ?? true };
}
