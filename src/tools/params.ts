import { Ajv, type ValidateFunction } from 'ajv';
import { isRecord, parseJson } from '../wire/json.ts';
import type { RegisteredTool } from './registered-tool.ts';

/** Params as they go to the tool (long integers exact), or what is wrong with them, for the model. */
export type Params = { value: Record<string, unknown>; problem?: undefined } | { value?: undefined; problem: string };

const OPTIONS = { strict: false, allErrors: true, validateFormats: false, logger: false } as const;
const ANYTHING: Record<string, unknown> = {};

/** What is wrong with a tool's schema; undefined when calls can be checked against it. */
export function problemOfSchema(schema: Record<string, unknown>): string | undefined {
  try {
    new Ajv(OPTIONS).compile(withoutDialect(schema));
    return undefined;
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown);
  }
}

/** The keywords of tools' schemas mean the same in every dialect; the checker knows one by name. */
function withoutDialect({ $schema: _dialect, ...schema }: Record<string, unknown>): Record<string, unknown> {
  return schema;
}

/** Checks calls against the tools' schemas; each is compiled once. */
export class ParamsCheck {
  readonly #compiled = new WeakMap<object, ValidateFunction>();

  /** `text`: the arguments as the model wrote them; nothing at all stands for no parameters. */
  check(tool: RegisteredTool, text: string): Params {
    const source = text.trim() === '' ? '{}' : text;
    let plain: unknown;
    let exact: unknown;
    try {
      plain = JSON.parse(source);
      exact = parseJson(source);
    } catch {
      return { problem: 'The arguments are not valid JSON.' };
    }
    if (!isRecord(plain) || !isRecord(exact)) return { problem: 'The arguments must be a JSON object.' };
    if (tool.parameters === undefined) return { value: exact };
    // Long integers are numbers to the schema, though kept as text.
    const validate = this.#compile(tool.parameters);
    if (validate(plain)) return { value: exact };
    const problems = (validate.errors ?? []).slice(0, 10).map(({ instancePath, message }) => `${instancePath || 'arguments'} ${message ?? 'is wrong'}`);
    return { problem: `The arguments do not fit the tool's schema: ${problems.join('; ')}.` };
  }

  #compile(schema: Record<string, unknown>): ValidateFunction {
    let validate = this.#compiled.get(schema);
    if (validate === undefined) {
      // An MCP server's schema may be beyond us: it checks its calls itself.
      // An instance each: one that is shared refuses a second schema of the same `$id`, which a reload or a reconnect brings.
      validate = new Ajv(OPTIONS).compile(problemOfSchema(schema) === undefined ? withoutDialect(schema) : ANYTHING);
      this.#compiled.set(schema, validate);
    }
    return validate;
  }
}
