/** `hermes-agent/plugin`: what plugin authors import. */
export type * from './config.ts';
export type * from './door.ts';
export { defineDoor } from './door.ts';
export * from './errors.ts';
export type * from './exchange.ts';
export type * from './guards.ts';
export type * from './local-tool.ts';
export {
  type Condition,
  defineMatcher,
  type KeywordProbe,
  type Matcher,
  type MatcherContext,
  type Resemblance,
  type RouteInput,
  type Verdict,
} from './matcher.ts';
export { definePlugin, type Hermes, type Hooks, type Next, type Plugin } from './plugin.ts';
export { defineProvider, type FailureKind, type Provider, type UpstreamCall, type UpstreamFailure } from './provider.ts';
export type * from './stream.ts';
export type * from './telemetry.ts';
