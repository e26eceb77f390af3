/** `cache`: answers that are given again. */
export interface CacheConfig {
  enabled: boolean;
  ttl_seconds: number;
  /** Of this process's memory. */
  max_bytes: number;
  semantic: { enabled: boolean; threshold: number };
}

export type GuardKind = 'pii' | 'secrets' | 'block_list' | 'webhook' | 'prompt_size' | 'output_size';
export type GuardAction = 'block' | 'redact' | 'flag';
export type GuardDirection = 'input' | 'output';
/** What `pii` and `secrets` look for. */
export type Detection = 'card' | 'email' | 'phone' | 'cn_id' | 'iban' | 'api_key' | 'private_key' | 'jwt';

/** One entry of `guards`. */
export interface GuardConfig {
  id: string;
  kind: GuardKind;
  action: GuardAction;
  apply: GuardDirection[];
  /** `pii`, `secrets`; absent: all of the kind. */
  detect?: Detection[] | undefined;
  /** `block_list`. */
  words?: string[] | undefined;
  /** `webhook`. */
  url?: string | undefined;
  secret_env?: string | undefined;
  timeout_ms: number;
  /** What a webhook that gives no verdict means. */
  on_error: 'block' | 'allow';
  /** `prompt_size`, `output_size`. */
  max_characters?: number | undefined;
  max_tokens?: number | undefined;
}

/** One entry of `trace.redact`: what a captured content must not show. */
export interface RedactRule {
  kind: 'pii' | 'secrets' | 'block_list' | 'pattern';
  /** `pii`, `secrets`; absent: all of the kind. */
  detect?: Detection[] | undefined;
  /** `block_list`. */
  words?: string[] | undefined;
  /** `pattern`: RE2. */
  regex?: string | undefined;
}

/** A turn whose rounds go round in a circle is ended. */
export interface LoopGuardConfig {
  repeats: number;
}
