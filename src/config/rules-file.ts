import { isRecord } from '../wire/json.ts';
import { type ConfigDocument, readDocument } from './document.ts';
import type { Environment } from './environment.ts';
import type { Path } from './problems.ts';

/** Candidate rules as they were read. */
export interface RulesFile {
  list: unknown;
  /** Where the list stands in the document. */
  base: Path;
  document: ConfigDocument;
}
/** The rules of a file that holds `route_rules:` among anything, or a bare list; whatever else is wrong in it. */
export function readRules(text: string, file: string, env: Environment): RulesFile {
  const document = readDocument(text, file, env, true);
  const bare = Array.isArray(document.value);
  const list = isRecord(document.value) ? document.value.route_rules : document.value;
  if (document.problems.length === 0 && !Array.isArray(list)) document.report([], 'must hold `route_rules:`, or be a list of rules');
  return { list: Array.isArray(list) ? list : [], base: bare ? [] : ['route_rules'], document };
}
