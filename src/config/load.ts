import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Config, RuleConfig } from '../contracts/config.ts';
import { isRecord } from '../wire/json.ts';
import { assemble, relativeTo } from './assemble.ts';
import { checkModels } from './check-models.ts';
import { type ConfigDocument, readDocument } from './document.ts';
import { checkSecrets, collectSecrets, type Environment, GENERATED_KEY, toKeys, variable } from './environment.ts';
import { BUILT_IN_PROVIDERS, defaultModelOf, type Inventory, type KnownProviders, takeInventory } from './inventory.ts';
import { reportIssues, toMessage } from './issues.ts';
import { readOverrides } from './overrides.ts';
import { ConfigError, type ConfigProblem, type Path } from './problems.ts';
import { checkReferences, checkRules, type Findings } from './references.ts';
import { resolvePassthrough, resolveRegistry } from './resolve.ts';
import { type ConfigFile, schema } from './schema.ts';
import { routeRules } from './schema-routing.ts';
import { resolveStorage } from './storage.ts';
import { warnAbout } from './warnings.ts';

export interface LoadOptions {
  /** `--config`; else `HERMES_CONFIG`, else `config/hermes.yaml`. */
  file?: string | undefined;
  /** The text instead of the file's own, for tests and editors; `file` names it. */
  text?: string | undefined;
  /** Default: the process's. */
  env?: Environment | undefined;
  flags?: { port?: string | number | undefined; host?: string | undefined } | undefined;
  cwd?: string | undefined;
  /** What the provider files bring: type name to its usual address and key variable. */
  knownProviders?: KnownProviders | undefined;
  /** Matchers beside hermes' own. */
  knownMatchers?: readonly string[] | undefined;
  /** Are there plugins in this folder that may add providers and matchers? What they do not add is found out when they are set up. */
  pluginsMayAdd?: ((folder: string) => boolean) | undefined;
  /** The key that an earlier load made, so that a reload does not lock everybody out. */
  generatedKey?: string | undefined;
}
export interface LoadedConfig {
  config: Config;
  warnings: string[];
  /** Files to watch. */
  files: string[];
  /** Made for this run because no key is configured; shown once. */
  generatedKey?: string | undefined;
}

/** The process's environment: the one place where it is read. `beneath` gives what it does not say itself. */
export function processEnvironment(beneath: Environment = {}): Environment {
  return { ...beneath, ...process.env };
}

/** Which file is read: the flag, `HERMES_CONFIG`, `config/hermes.yaml`. Absolute. */
export function configFile(options: Pick<LoadOptions, 'file' | 'env' | 'cwd'>): string {
  const env = options.env ?? processEnvironment();
  return resolve(options.cwd ?? process.cwd(), options.file ?? variable(env, 'HERMES_CONFIG') ?? 'config/hermes.yaml');
}

/** Reads and validates the whole configuration. Throws a ConfigError with every mistake at once. */
export function loadConfig(options: LoadOptions = {}): LoadedConfig {
  return new Loading(options).run();
}

/** One pass over the whole configuration; what is wrong is collected, not thrown, until everything was looked at. */
class Loading {
  private readonly options: LoadOptions;
  private readonly env: Environment;
  private readonly cwd: string;
  private readonly file: string;
  private readonly known: KnownProviders;
  private readonly matchers: readonly string[];
  private readonly problems: ConfigProblem[] = [];
  private readonly warnings: string[] = [];
  private readonly files: string[];

  constructor(options: LoadOptions) {
    this.options = options;
    this.env = options.env ?? processEnvironment();
    this.cwd = options.cwd ?? process.cwd();
    this.file = configFile(options);
    this.known = options.knownProviders ?? BUILT_IN_PROVIDERS;
    this.matchers = options.knownMatchers ?? [];
    this.files = [this.file];
  }

  run(): LoadedConfig {
    const document = readDocument(this.options.text ?? this.read(this.file), this.file, this.env);
    if (!isRecord(document.value)) throw new ConfigError(document.problems);
    const raw = document.value;
    const inventory = takeInventory(raw, this.known);
    const findings = this.findings(document, this.pluginsMayAdd(raw));
    const parsed = schema.safeParse(raw, { error: toMessage });
    if (!parsed.success) reportIssues(parsed.error.issues, document.report);
    checkReferences(raw, inventory, this.matchers, findings);
    checkModels(raw, inventory, this.known, findings);
    checkSecrets(raw, this.env, document.report);
    const candidates = this.readCandidates('shadow', raw, inventory, document);
    const rollout = this.readCandidates('rollout', raw, inventory, document);
    const overrides = readOverrides(this.options.flags, this.env, (problem) => this.problems.push(problem));
    const storage = parsed.success ? this.storage(parsed.data, document) : undefined;
    if (storage && parsed.success && parsed.data.server.workers !== 1 && (storage.hot_backend !== 'redis' || storage.cold_backend !== 'postgres'))
      document.report(
        ['server', 'workers'],
        'several workers need stores that they share: set REDIS_URL=redis://… and DATABASE_URL=postgres://…, or leave it at 1',
      );
    this.problems.unshift(...document.problems);
    if (!parsed.success || storage === undefined || this.problems.length > 0) throw new ConfigError(this.problems);

    const file = parsed.data;
    const found = collectSecrets(raw, this.env, this.known);
    const { keys, generatedKey } = toKeys(file, found, this.options.generatedKey);
    const secrets = generatedKey === undefined ? found : new Map([...found, [GENERATED_KEY, generatedKey]]);
    const context = { file, inventory, known: this.known, secrets, warn: findings.warn };
    const registry = resolveRegistry(context, defaultModelOf(raw, inventory.models, inventory.aliases) ?? '');
    const passthrough = resolvePassthrough(file.passthrough.upstream, registry, context);
    const parts = {
      path: this.file,
      cwd: this.cwd,
      inventory,
      known: this.known,
      registry,
      passthrough,
      keys,
      secrets,
      candidates,
      rollout,
      overrides,
      storage,
    };
    const config = assemble(file, parts);
    warnAbout(config, file, findings.warn);
    return { config, warnings: [...new Set(this.warnings)], files: this.files, ...(generatedKey === undefined ? {} : { generatedKey }) };
  }

  private pluginsMayAdd(raw: Record<string, unknown>): boolean {
    const given = isRecord(raw.pipeline) ? raw.pipeline.plugins_dir : undefined;
    const folder = typeof given === 'string' ? resolve(dirname(this.file), given) : resolve(this.cwd, 'plugins');
    return this.options.pluginsMayAdd?.(folder) ?? false;
  }

  private findings(document: ConfigDocument, pluginsMayAdd = false): Findings {
    const nothing = (): void => undefined;
    const warn = (path: Path, message: string): void => {
      this.warnings.push(path.length === 0 ? message : `${document.place(path)}: ${message}`);
    };
    return {
      report: document.report,
      reportUnlessAdded: pluginsMayAdd ? nothing : document.report,
      warn,
      warnUnlessAdded: pluginsMayAdd ? nothing : warn,
    };
  }

  private read(file: string): string {
    try {
      return readFileSync(file, 'utf8');
    } catch (error) {
      throw new ConfigError([{ file, line: 0, column: 0, path: '', message: `${whyUnreadable(error)}; give a file by --config or HERMES_CONFIG` }]);
    }
  }

  private storage(file: ConfigFile, document: ConfigDocument): Config['session']['storage'] {
    return resolveStorage(file.session.storage, this.env, this.cwd, {
      report: document.report,
      reportVariable: (name, message) => this.problems.push({ file: 'environment', line: 0, column: 0, path: name, message }),
    });
  }

  /** The rules of the file that `shadow` or `rollout` names; what is missing of `rollout` its schema tells. */
  private readCandidates(block: 'shadow' | 'rollout', raw: Record<string, unknown>, inventory: Inventory, document: ConfigDocument): RuleConfig[] {
    const given = raw[block];
    if (!isRecord(given)) return [];
    if (given.rules_file === undefined && block === 'shadow') document.report([block, 'rules_file'], 'is missing: the file with the candidate rules');
    if (typeof given.rules_file !== 'string' || given.rules_file === '') return [];
    const file = relativeTo(this.file, given.rules_file);
    if (!this.files.includes(file)) this.files.push(file);
    let text: string;
    try {
      text = readFileSync(file, 'utf8');
    } catch (error) {
      document.report([block, 'rules_file'], `${file}: ${whyUnreadable(error)}`);
      return [];
    }
    const rules = readRules(text, file, this.env);
    checkRules(rules.list, rules.base, inventory, this.matchers, this.findings(rules.document));
    const parsed = routeRules.safeParse(rules.list, { error: toMessage });
    if (!parsed.success) reportIssues(parsed.error.issues, rules.document.report, rules.base);
    this.problems.push(...rules.document.problems);
    return parsed.success ? parsed.data : [];
  }
}

function whyUnreadable(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
  if (code === 'ENOENT') return 'there is no such file';
  return code === 'EISDIR' ? 'is a folder, not a file' : `cannot be read (${code})`;
}

/** The rules of a file that holds `route_rules:` among anything, or a bare list; whatever else is wrong in it. */
function readRules(text: string, file: string, env: Environment = processEnvironment()): { list: unknown; base: Path; document: ConfigDocument } {
  const document = readDocument(text, file, env, true);
  const bare = Array.isArray(document.value);
  const list = isRecord(document.value) ? document.value.route_rules : document.value;
  if (document.problems.length === 0 && !Array.isArray(list)) document.report([], 'must hold `route_rules:`, or be a list of rules');
  return { list: Array.isArray(list) ? list : [], base: bare ? [] : ['route_rules'], document };
}
