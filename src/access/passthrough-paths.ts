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
