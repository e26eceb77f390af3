/** The value in the cold store that is a session's summary (`session.summarize_dropped`): what people said, so it goes with the session. */
export function recapKey(project: string, session: string): string {
  return `recap:${encodeURIComponent(project)}:${session}`;
}
