import { readFileSync } from 'node:fs';
import { dirname, isAbsolute, resolve } from 'node:path';
import type { Config, RuleConfig } from '../contracts/config.ts';
import { isRecord } from '../wire/json.ts';
import { checkModels } from './check-models.ts';
import { type ConfigDocument, readDocument } from './document.ts';
import { checkSecrets, collectSecrets, type Environment, GENERATED_KEY, isWeak, toKeys, toSignatures, variable } from './environment.ts';
import { BUILT_IN_PROVIDERS, defaultModelOf, type Inventory, type KnownProviders, takeInventory } from './inventory.ts';
import { reportIssues, toMessage } from './issues.ts';
import { usesMatcher } from './match.ts';
import { ConfigError, type ConfigProblem, didYouMean, type Path } from './problems.ts';
import { checkReferences, checkRules, type Findings } from './references.ts';
import { type ResolveContext, resolvePassthrough, resolveRegistry } from './resolve.ts';
import { type ConfigFile, schema } from './schema.ts';
import { routeRules } from './schema-routing.ts';
import { resolveStorage } from './storage.ts';

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

/** Which file is read: the flag, `HERMES_CONFIG`, `config/hermes.yaml`. Absolute. */
export function configFile(options: Pick<LoadOptions, 'file' | 'env' | 'cwd'>): string {
  const env = options.env ?? process.env;
  return resolve(options.cwd ?? process.cwd(), options.file ?? variable(env, 'HERMES_CONFIG') ?? 'config/hermes.yaml');
}

/** Reads and validates the whole configuration. Throws a ConfigError with every mistake at once. */
export function loadConfig(options: LoadOptions = {}): LoadedConfig {
  return new Loading(options).run();
}

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
    this.env = options.env ?? process.env;
    this.cwd = options.cwd ?? process.cwd();
    this.file = configFile(options);
    this.known = { ...BUILT_IN_PROVIDERS, ...options.knownProviders };
    this.matchers = options.knownMatchers ?? [];
    this.files = [this.file];
  }

  run(): LoadedConfig {
    const document = readDocument(this.options.text ?? this.read(this.file), this.file, this.env);
    if (!isRecord(document.value)) throw new ConfigError(document.problems);
    const raw = document.value;
    const inventory = takeInventory(raw, this.known);
    const findings: Findings = { report: document.report, warn: (path, message) => this.warnings.push(`${document.place(path)}: ${message}`) };
    const parsed = schema.safeParse(raw, { error: toMessage });
    if (!parsed.success) reportIssues(parsed.error.issues, document.report);
    checkReferences(raw, inventory, this.matchers, findings);
    checkModels(raw, inventory, this.known, findings);
    checkSecrets(raw, this.env, document.report);
    const candidates = this.readShadowRules(raw, inventory, document);
    const overrides = this.overrides();
    const storage = parsed.success ? this.storage(parsed.data, document) : undefined;
    this.problems.unshift(...document.problems);
    if (!parsed.success || storage === undefined || this.problems.length > 0) throw new ConfigError(this.problems);
    return this.assemble(parsed.data, { raw, inventory, document, findings, candidates, overrides, storage });
  }

  private read(file: string): string {
    try {
      return readFileSync(file, 'utf8');
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : undefined;
      const why =
        code === 'ENOENT'
          ? 'there is no such file: give one by --config or HERMES_CONFIG'
          : code === 'EISDIR'
            ? 'is a folder, not a file'
            : `cannot be read (${String(code)})`;
      throw new ConfigError([{ file, line: 0, column: 0, path: '', message: why }]);
    }
  }

  private storage(file: ConfigFile, document: ConfigDocument): Config['session']['storage'] {
    return resolveStorage(file.session.storage, this.env, this.cwd, {
      report: document.report,
      reportVariable: (name, message) => this.problems.push({ file: 'environment', line: 0, column: 0, path: name, message }),
    });
  }

  /** Flags beat environment beats file. */
  private overrides(): { port: number | undefined; host: string | undefined; level: Config['log']['level'] | undefined } {
    const wrong = (file: string, path: string, message: string) => this.problems.push({ file, line: 0, column: 0, path, message });
    const flag = this.options.flags?.port;
    const text = flag === undefined ? variable(this.env, 'PORT') : String(flag).trim();
    const port = text === undefined ? undefined : Number(text);
    if (port !== undefined && !(/^\d+$/.test(text ?? '') && port <= 65_535))
      wrong(flag === undefined ? 'environment' : 'flags', flag === undefined ? 'PORT' : '--port', 'must be a port: a number from 0 to 65535');
    const levels: readonly Config['log']['level'][] = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];
    const asked = variable(this.env, 'LOG_LEVEL')?.toLowerCase();
    const level = levels.find((one) => one === asked);
    if (asked !== undefined && level === undefined) wrong('environment', 'LOG_LEVEL', `must be one of ${levels.join(', ')}${didYouMean(asked, levels)}`);
    return { port, host: this.options.flags?.host ?? variable(this.env, 'HOST'), level };
  }

  private readShadowRules(raw: Record<string, unknown>, inventory: Inventory, document: ConfigDocument): RuleConfig[] {
    const shadow = raw.shadow;
    const name = isRecord(shadow) ? shadow.rules_file : undefined;
    if (isRecord(shadow) && name === undefined) document.report(['shadow', 'rules_file'], 'is missing: the file with the candidate rules');
    if (typeof name !== 'string' || name === '') return [];
    const file = this.relative(name);
    this.files.push(file);
    let text: string;
    try {
      text = readFileSync(file, 'utf8');
    } catch {
      document.report(['shadow', 'rules_file'], `cannot be read: ${file}`);
      return [];
    }
    const rules = readRules(text, file, this.env);
    const warn = (path: Path, message: string) => this.warnings.push(`${rules.document.place(path)}: ${message}`);
    checkRules(rules.list, rules.base, inventory, this.matchers, { report: rules.document.report, warn });
    const parsed = routeRules.safeParse(rules.list, { error: toMessage });
    if (!parsed.success) reportIssues(parsed.error.issues, rules.document.report, rules.base);
    this.problems.push(...rules.document.problems);
    return parsed.success ? parsed.data : [];
  }

  private relative(path: string): string {
    return isAbsolute(path) ? path : resolve(dirname(this.file), path);
  }

  private assemble(file: ConfigFile, parts: Parts): LoadedConfig {
    const { inventory, findings, document } = parts;
    const found = collectSecrets(parts.raw, this.env, this.known);
    const { keys, generatedKey } = toKeys(file, found, this.options.generatedKey);
    const secrets = generatedKey === undefined ? found : new Map([...found, [GENERATED_KEY, generatedKey]]);
    const context: ResolveContext = { file, inventory, known: this.known, secrets, warn: findings.warn };
    const defaultModel = defaultModelOf(parts.raw, inventory.models, inventory.aliases) ?? '';
    const registry = resolveRegistry(context, defaultModel);
    if (file.default_model === undefined) findings.warn(['models'], `default_model is not given: \`${defaultModel}\` serves what no rule takes`);
    const timezone = file.cost.timezone ?? new Intl.DateTimeFormat().resolvedOptions().timeZone;
    const idOf = (name: string) => inventory.idOf(name) ?? name;
    const rules = file.route_rules.map((rule) => ({ ...rule, model: rule.model === 'default_model' ? rule.model : idOf(rule.model) }));
    const { $schema: _, providers: __, models: ___, ...blocks } = file;
    const summarize = file.session.summarize_dropped;
    const visible: Omit<Config, 'secrets'> = {
      ...blocks,
      file: this.file,
      registry,
      server: { ...file.server, host: parts.overrides.host ?? file.server.host, port: parts.overrides.port ?? file.server.port },
      auth: { keys, signatures: toSignatures(file) },
      default_model: defaultModel,
      route_rules: rules,
      embedding: this.embedding(file, parts),
      session: { ...file.session, storage: parts.storage, summarize_dropped: summarize && { ...summarize, model: idOf(summarize.model) } },
      tools: file.tools.map((tool) => ({ ...tool, side_effects: tool.side_effects ?? true })),
      cost: {
        ...file.cost,
        timezone,
        schedule: file.cost.schedule.map((entry) => ({ ...entry, model: idOf(entry.model) })),
        budgets: file.cost.budgets.map((entry) => ({ ...entry, switch_to: idOf(entry.switch_to) })),
      },
      shadow: file.shadow && {
        ...file.shadow,
        rules_file: file.shadow.rules_file && this.relative(file.shadow.rules_file),
        rules: parts.candidates.map((rule) => ({ ...rule, model: rule.model === 'default_model' ? rule.model : idOf(rule.model) })),
      },
      passthrough: { ...file.passthrough, target: resolvePassthrough(file.passthrough.upstream, registry, context) },
      pipeline: {
        ...file.pipeline,
        plugins_dir: file.pipeline.plugins_dir === undefined ? resolve(this.cwd, 'plugins') : this.relative(file.pipeline.plugins_dir),
      },
      routing: { ...file.routing, timezone: file.routing.timezone ?? timezone },
      log: { level: parts.overrides.level ?? file.log.level },
    };
    const config = Object.defineProperty(visible, 'secrets', { value: secrets, enumerable: false }) as Config;
    this.warnAbout(config, file, document);
    return { config, warnings: [...new Set(this.warnings)], files: this.files, ...(generatedKey === undefined ? {} : { generatedKey }) };
  }

  /** Embedding rules without a service use the one in this process; a provider's address and key are filled in. */
  private embedding(file: ConfigFile, parts: Parts): Config['embedding'] {
    const used = [...file.route_rules, ...parts.candidates].some((rule) => usesMatcher(rule.match, 'embedding'));
    if (file.embedding === undefined) {
      if (!used) return undefined;
      parts.findings.warn(['route_rules'], 'embedding rules without an `embedding:` block use `builtin`, which knows words and not meaning');
      return { provider: 'builtin', timeout_ms: 800 };
    }
    const name = file.embedding.provider;
    if (name === 'builtin') return file.embedding;
    const entry = Object.hasOwn(file.providers, name) ? file.providers[name] : undefined;
    const defaults = this.known[entry?.type ?? name] ?? {};
    const apiBase = file.embedding.api_base ?? entry?.api_base ?? defaults.apiBase;
    const usual = apiBase === defaults.apiBase ? defaults.apiKeyEnv : undefined;
    return { ...file.embedding, api_base: apiBase, api_key_env: file.embedding.api_key_env ?? entry?.api_key_env ?? usual };
  }

  private warnAbout(config: Config, file: ConfigFile, document: ConfigDocument): void {
    const warn = (path: Path, message: string) => this.warnings.push(`${document.place(path)}: ${message}`);
    const missing = new Map<string, Set<string>>();
    for (const model of config.registry.models.values()) {
      for (const target of model.upstreams) {
        if (target.apiKeyEnv !== undefined && target.apiKey === undefined)
          missing.set(target.apiKeyEnv, (missing.get(target.apiKeyEnv) ?? new Set()).add(target.id));
      }
    }
    for (const [name, upstreams] of missing)
      warn(['models'], `the environment variable ${name} is not set: calls of ${[...upstreams].join(', ')} fail with upstream_key_missing until it is`);
    const other: [string | undefined, Path, string][] = [
      [config.embedding?.api_key_env, ['embedding'], 'embedding rules are skipped until it is'],
      ...file.cost.budgets.map((budget, index): [string | undefined, Path, string] => [
        budget.notify?.url_env,
        ['cost', 'budgets', index, 'notify'],
        'nobody is told when the budget is crossed',
      ]),
    ];
    for (const [name, path, what] of other)
      if (name !== undefined && !config.secrets.has(name)) warn(path, `the environment variable ${name} is not set: ${what}`);
    file.tools.forEach((tool, index) => {
      if (tool.side_effects === undefined)
        warn(['tools', index], `\`${tool.id}\` does not say side_effects: it is taken to have some; write \`side_effects: false\` when it only reads`);
    });
    for (const key of config.auth.keys) {
      const value = key.key_env === undefined ? undefined : config.secrets.get(key.key_env);
      if (value !== undefined && isWeak(value))
        this.warnings.push(
          `the key in ${key.key_env} is weak (under 20 characters, or a word and digits): use a long random one, like \`openssl rand -hex 24\``,
        );
    }
    for (const [name, provider] of Object.entries(file.providers)) {
      if (provider.type === 'openai' && name !== 'openai' && provider.api_base === undefined)
        warn(['providers', name], 'has no api_base: https://api.openai.com/v1 is assumed');
    }
  }
}

interface Parts {
  raw: Record<string, unknown>;
  inventory: Inventory;
  document: ConfigDocument;
  findings: Findings;
  candidates: RuleConfig[];
  overrides: { port: number | undefined; host: string | undefined; level: Config['log']['level'] | undefined };
  storage: Config['session']['storage'];
}

/** The rules of a file that holds `route_rules:` among anything, or a bare list; whatever else is wrong in it. */
export function readRules(text: string, file: string, env: Environment = process.env): { list: unknown; base: Path; document: ConfigDocument } {
  const document = readDocument(text, file, env, true);
  const bare = Array.isArray(document.value);
  const list = isRecord(document.value) ? document.value.route_rules : document.value;
  if (document.problems.length === 0 && !Array.isArray(list)) document.report([], 'must hold `route_rules:`, or be a list of rules');
  return { list: Array.isArray(list) ? list : [], base: bare ? [] : ['route_rules'], document };
}
