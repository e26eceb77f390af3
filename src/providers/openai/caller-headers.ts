/** The whole prefix: project-scoped variants exist. */
const SHOWN = /^(?:x-ratelimit-|openai-processing-ms$|openai-version$)/;

/** Of an answer's headers those that tell a caller something of use, and nothing of the account behind. */
export function toCallerHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  const shown: Record<string, string> = {};
  for (const name in headers) if (SHOWN.test(name)) shown[name] = headers[name] ?? '';
  return shown;
}
