import type { UpstreamTarget } from './exchange.ts';
import type { CacheConfig, GuardConfig, LoopGuardConfig, RedactRule } from './guards.ts';
import type { LocalTool } from './local-tool.ts';

/**
 * The configuration as the pipeline sees it: the file's own names, every default filled in. `config/schema.ts` validates
 * it and carries unit, default and effect of every field; `docs/configuration.md` is generated from there.
 */
export type Priority = 'urgent' | 'normal' | 'batch';

export interface KeyConfig {
  id: string;
  key_env?: string | undefined;
  sha256?: string | undefined;
  service: string;
  services: string[];
  project: string;
  projects: string[];
  admin: boolean;
  models: string[];
  tools: string[];
  user_levels: string[];
  priorities: string[];
  passthrough: string[];
  expires?: string | undefined;
}
export interface SignatureConfig {
  service: string;
  secret_env: string;
  max_skew_seconds: number;
  project: string;
  models: string[];
  tools: string[];
}
export interface LimitConfig {
  per: 'user' | 'service' | 'session' | 'key' | 'project';
  requests_per_minute?: number | undefined;
  tokens_per_minute?: number | undefined;
  burst?: number | undefined;
  match?: Record<string, unknown> | undefined;
}
export interface PricingConfig {
  input_per_million: number;
  output_per_million: number;
  cached_input_per_million?: number | undefined;
  cache_write_per_million?: number | undefined;
  reasoning_per_million?: number | undefined;
  per_request?: number | undefined;
  from?: string | undefined;
  bands: { days?: string | undefined; hours: string; timezone?: string | undefined; multiply: number }[];
}
export interface FailoverConfig {
  strategy: 'weighted_round_robin' | 'priority' | 'least_latency';
  failure_threshold: number;
  cooldown_ms: number;
  max_attempts: number;
  max_retry_after_ms: number;
  affinity: 'none' | 'session';
  hedge_ms: number;
  commit: 'content' | 'complete';
  fallback_target?: string | undefined;
  /** The keys that the file itself gives; the others hold their defaults. Models that share an upstream: of the written values the strictest hold. */
  written?: readonly string[] | undefined;
}
/** A registry model with its upstreams resolved: what the pipeline uses. */
export interface ModelEntry {
  id: string;
  aliases: string[];
  tier: 'low' | 'mid' | 'high' | undefined;
  failover: FailoverConfig;
  /** In the order of the list; a plain model has one. */
  upstreams: UpstreamTarget[];
  /** Newest first where several are dated; empty: unpriced. */
  pricing: PricingConfig[];
  /** The smallest of its upstreams, for views. */
  contextWindow: number | undefined;
  maxTokens: number | undefined;
  ownedBy: string;
}
export interface ModelRegistry {
  readonly models: ReadonlyMap<string, ModelEntry>;
  readonly defaultModel: string;
  /** By id, alias or an upstream's `model_name`. */
  find(name: string): ModelEntry | undefined;
  /** Every distinct upstream. */
  readonly upstreams: readonly UpstreamTarget[];
}
export interface RuleConfig {
  id: string;
  match: unknown;
  /** A model's id or `default_model`. */
  model: string;
  tools?: string[] | undefined;
  priority?: Priority | undefined;
}
export interface EmbeddingConfig {
  provider: string;
  model_name?: string | undefined;
  api_base?: string | undefined;
  api_key_env?: string | undefined;
  timeout_ms: number;
}
/** What holds for a tool, wherever it runs. */
export interface ToolSettings {
  id: string;
  timeout_ms: number;
  retries: number;
  allow: { services: string[]; user_levels: string[] };
  summary?: ToolSummary | undefined;
  dedupe?: { by: string[]; window_seconds: number } | undefined;
}
export interface ToolSummary {
  keep_last: number;
  max_tokens: number;
  /** The only fields that stay, by name, wherever they stand. */
  fields?: string[] | undefined;
}
/** A tool behind an address. */
export interface EndpointTool extends ToolSettings {
  description?: string | undefined;
  parameters?: Record<string, unknown> | undefined;
  endpoint: string;
  side_effects: boolean;
  secret_env?: string | undefined;
}
export type ToolConfig = EndpointTool | LocalTool;
/** An MCP server: its tools join the registry as `<id>.<tool>`, with these settings. */
export interface ToolSourceConfig extends ToolSettings {
  /** Undefined: a tool has some unless the server says that it only reads. */
  side_effects?: boolean | undefined;
  mcp: McpServerConfig;
}
/** A program that is started, or an address. */
export type McpServerConfig =
  | { command: string[]; env: Record<string, string>; url?: undefined }
  | { url: string; headers: Record<string, string>; secret_env?: string | undefined; command?: undefined };
export interface ScheduleConfig {
  id: string;
  hours: string;
  days?: string | undefined;
  except_priority: Priority[];
  except_routes: string[];
  routes?: string[] | undefined;
  services?: string[] | undefined;
  tiers?: string[] | undefined;
  model: string;
}
/** Exactly one of `service`, `project`, `user` and `key`; at least one of the amounts; `switch_to` unless it refuses. */
export interface BudgetConfig {
  id: string;
  service?: string | undefined;
  project?: string | undefined;
  user?: string | undefined;
  key?: string | undefined;
  usd_per_day?: number | undefined;
  usd_per_month?: number | undefined;
  action: 'switch' | 'refuse';
  switch_to?: string | undefined;
  warn_percent: number;
  notify?: { url_env: string; format: 'json' | 'feishu' | 'dingtalk' | 'slack'; secret_env?: string | undefined } | undefined;
}

export interface RolloutConfig {
  rules_file: string;
  rules: RuleConfig[];
  /** 0 to 100. */
  percent: number;
  by: 'session' | 'user' | 'key';
}

export interface Config {
  /** The file it came from, absolute. */
  readonly file: string;
  /** Of the environment: how calls to models leave this network. Absent: straight. */
  readonly proxy?: { http: string | undefined; https: string | undefined; no: string | undefined } | undefined;
  readonly registry: ModelRegistry;
  /** Environment values that the file names (`*_env`), by variable name. Not enumerable: never logged. */
  readonly secrets: ReadonlyMap<string, string>;
  server: {
    host: string;
    port: number;
    /** Bytes. */
    body_limit: number;
    max_depth: number;
    drain_delay_ms: number;
    drain_timeout_ms: number;
    keep_alive_timeout_ms: number;
    header_timeout_ms: number;
    request_timeout_ms: number;
    write_timeout_ms: number;
    heartbeat_ms: number;
    max_event_bytes: number;
    /** Requests served at once; beyond it 503 `overloaded`. 0: no limit. */
    max_in_flight: number;
    /** Mean delay of the event loop beyond which requests are refused. 0: no limit. */
    max_event_loop_delay_ms: number;
    /** Processes that share the port; `auto` is a number here. */
    workers: number;
    trusted_proxies: string[];
  };
  auth: { keys: KeyConfig[]; signatures: SignatureConfig[] };
  limits: LimitConfig[];
  default_model: string;
  route_rules: RuleConfig[];
  embedding?: EmbeddingConfig | undefined;
  session: {
    storage: {
      hot_backend: 'memory' | 'redis';
      hot_ttl_seconds: number;
      cold_backend: 'sqlite' | 'postgres';
      /** Resolved: `sqlite:////absolute/path` (what follows `sqlite:///` is the path), `sqlite::memory:` or `postgres://…`. */
      database_url: string;
      redis_url: string | undefined;
    };
    max_history_messages: number;
    max_context_tokens: number;
    reserve_tokens: number;
    concurrency: 'serialize' | 'reject';
    durability: 'strict' | 'relaxed';
    retention_days: number;
    lease_ms: number;
    /** Dropped history is summed up by this model instead of being left out. */
    summarize_dropped?: { model: string; max_tokens: number } | undefined;
  };
  trim: { stateless: boolean };
  /** Those of the file, then those that plugins added. */
  tools: ToolConfig[];
  tool_sources: ToolSourceConfig[];
  tools_max_rounds: number;
  /** Undefined: only `tools_max_rounds` ends a turn. */
  tool_loop_guard?: LoopGuardConfig | undefined;
  /** Undefined: off. */
  cache?: CacheConfig | undefined;
  /** Empty: off. */
  guards: GuardConfig[];
  idempotency: { ttl_seconds: number; max_bytes: number; sdk_retry_window_seconds: number; rejoin_seconds: number };
  cost: {
    timezone: string;
    unpriced: 'allow' | 'refuse';
    schedule: ScheduleConfig[];
    budgets: BudgetConfig[];
  };
  shadow?: { sample: number; rules_file?: string | undefined; rules: RuleConfig[]; run_models: boolean; usd_per_day: number } | undefined;
  /** A stable share of the sessions, users or keys is decided by these rules for real. */
  rollout?: RolloutConfig | undefined;
  trace: {
    capture_content: boolean | 'hashes';
    redact: RedactRule[];
    /** Of the secret under which contents are hashed. */
    hash_key_env?: string | undefined;
    /** Share of the good requests whose traces are stored and exported. */
    sample: number;
    keep_days: number;
    otlp_endpoint: string;
  };
  metrics: { token_env?: string | undefined };
  passthrough: { upstream?: string | undefined; body_limit: number; responses: boolean; target: UpstreamTarget | undefined };
  pipeline: { plugins_dir: string; order: string[] };
  plugins: Record<string, unknown>;
  routing: { unknown_model: 'reject' | 'route'; timezone: string };
  redis: { key_prefix: string };
  log: { level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent' };
}
