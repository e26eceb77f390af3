/** The stateless ones: nothing is stored at the vendor. */
export const DEFAULT_PASSTHROUGH: readonly string[] = [
  '/v1/embeddings',
  '/v1/completions',
  '/v1/moderations',
  '/v1/audio',
  '/v1/images',
  '/v1/responses',
  '/v1/realtime',
];

/** What is stored at the vendor's: only for keys that list it, or admins. */
export const STATEFUL_PATHS: readonly string[] = [
  '/v1/files',
  '/v1/batches',
  '/v1/uploads',
  '/v1/vector_stores',
  '/v1/fine_tuning',
  '/v1/assistants',
  '/v1/threads',
  '/v1/containers',
  '/v1/conversations',
  '/v1/evals',
];
