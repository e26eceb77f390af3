/** An expected end of a command: its message is all that is said, exit 1. */
export class CommandFailed extends Error {}
