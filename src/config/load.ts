import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Config, RuleConfig } from '../contracts/config.ts';
import { isRecord } from '../wire/json.ts';
import { assemble, relativeTo } from './assemble.ts';
import { checkModels } from './check-models.ts';
import { type ConfigDocument, readDocument } from './document.ts';
import { checkSecrets, collectSecrets, type Environment, GENERATED_KEY, toKeys, variable } from './environment.ts';
import { BUILT_IN_PROVIDERS, defaultModelOf, type Inventory, type KnownProviders, takeInventory } from './inventory.ts';
import { reportIssues, toMessage } from './issues.ts';
import { readOverrides } from './overrides.ts';
import { ConfigError, type ConfigProblem, formatProblem, type Path } from './problems.ts';
import { checkReferences, checkRules, type Findings } from './references.ts';
import { resolvePassthrough, resolveRegistry } from './resolve.ts';
import { type RulesFile, readRules } from './rules-file.ts';
import { type ConfigFile, schema } from './schema.ts';
import { routeRules } from './schema-routing.ts';
import { resolveStorage } from './storage.ts';
import { slipsAmong, toldOf, type UnlessAdded } from './unless-added.ts';
import { warnAbout } from './warnings.ts';
import { whyNoFolder, whyUnreadable } from './why-unreadable.ts';

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
  /** Names that nothing has defined yet; empty where there are no plugins. */
  unlessAdded: readonly UnlessAdded[];
  /** Where a part of the configuration was written, for what is found out only when plugins are set up: also of `shadow.rules`, `rollout.rules`. */
  problemAt(path: Path, message: string): ConfigProblem;
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
  private readonly unlessAdded: UnlessAdded[] = [];
  /** Files of candidate rules by the block that names them. */
  private readonly rulesFiles = new Map<unknown, RulesFile>();

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
    const pluginsMayAdd = this.checkPluginsFolder(raw, document);
    const findings = this.findings(document, pluginsMayAdd);
    const parsed = schema.safeParse(raw, { error: toMessage });
    if (!parsed.success) reportIssues(parsed.error.issues, document.report);
    checkReferences(raw, inventory, this.matchers, findings);
    checkModels(raw, inventory, this.known, findings);
    checkSecrets(raw, this.env, document.report);
    const candidates = this.readCandidates('shadow', raw, inventory, document, pluginsMayAdd);
    const rollout = this.readCandidates('rollout', raw, inventory, document, pluginsMayAdd);
    const overrides = readOverrides(this.options.flags, this.env, (problem) => this.problems.push(problem));
    const storage = parsed.success ? this.storage(parsed.data, document) : undefined;
    if (storage && parsed.success && parsed.data.server.workers !== 1 && (storage.hot_backend !== 'redis' || storage.cold_backend !== 'postgres'))
      document.report(
        ['server', 'workers'],
        'several workers need stores that they share: set REDIS_URL=redis://… and DATABASE_URL=postgres://…, or leave it at 1',
      );
    this.problems.unshift(...document.problems);
    if (!parsed.success || storage === undefined || this.problems.length > 0) throw new ConfigError([...this.problems, ...slipsAmong(this.unlessAdded)]);

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
    return {
      config,
      warnings: [...new Set(this.warnings)],
      files: this.files,
      ...(generatedKey === undefined ? {} : { generatedKey }),
      unlessAdded: this.unlessAdded,
      problemAt: (path, message) => this.problemAt(document, path, message),
    };
  }

  /** Are there plugins? The usual folder need not be there; one that is written down must. */
  private checkPluginsFolder(raw: Record<string, unknown>, document: ConfigDocument): boolean {
    const given = isRecord(raw.pipeline) ? raw.pipeline.plugins_dir : undefined;
    const folder = typeof given === 'string' ? relativeTo(this.file, given) : resolve(this.cwd, 'plugins');
    const wrong = typeof given === 'string' && given !== '' ? whyNoFolder(folder) : undefined;
    if (wrong !== undefined) document.report(['pipeline', 'plugins_dir'], `${folder}: ${wrong}`);
    return wrong === undefined && (this.options.pluginsMayAdd?.(folder) ?? false);
  }

  private findings(document: ConfigDocument, pluginsMayAdd: boolean): Findings {
    const warn = (path: Path, message: string): void => {
      this.warnings.push(path.length === 0 ? message : formatProblem(document.problemAt(path, message)));
    };
    return {
      report: document.report,
      warn,
      unlessAdded: (path, missing) => {
        const told = toldOf(missing);
        if (pluginsMayAdd) this.unlessAdded.push({ ...missing, problem: document.problemAt(path, told) });
        else if (missing.kind === 'tool') warn(path, told);
        else document.report(path, told);
      },
    };
  }

  private problemAt(document: ConfigDocument, path: Path, message: string): ConfigProblem {
    const [block, list, ...rest] = path;
    const rules = list === 'rules' ? this.rulesFiles.get(block) : undefined;
    return rules ? rules.document.problemAt([...rules.base, ...rest], message) : document.problemAt(path, message);
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
  private readCandidates(
    block: 'shadow' | 'rollout',
    raw: Record<string, unknown>,
    inventory: Inventory,
    document: ConfigDocument,
    pluginsMayAdd: boolean,
  ): RuleConfig[] {
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
    this.rulesFiles.set(block, rules);
    checkRules(rules.list, rules.base, inventory, this.matchers, this.findings(rules.document, pluginsMayAdd));
    const parsed = routeRules.safeParse(rules.list, { error: toMessage });
    if (!parsed.success) reportIssues(parsed.error.issues, rules.document.report, rules.base);
    this.problems.push(...rules.document.problems);
    return parsed.success ? parsed.data : [];
  }
}
