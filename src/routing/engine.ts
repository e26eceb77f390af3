import type { Config } from '../contracts/config.ts';
import type { Arm, RouteDecision } from '../contracts/exchange.ts';
import type { RouteEngine, RouteSubject } from '../contracts/routing.ts';
import type { Environment } from '../contracts/telemetry.ts';
import { type Allows, checkModel, namedModel } from './choose-model.ts';
import { armOf } from './rollout.ts';
import { RouteQuestion } from './route-question.ts';
import type { Decided } from './route-statistics.ts';
import type { CompiledRule, RuleSet } from './rule-set.ts';
import type { TurnDecisions } from './turn-decisions.ts';

/** The reserved name that a rule gives for the default model. */
const DEFAULT_MODEL = 'default_model';

export interface EngineParts {
  set: RuleSet;
  config: Config;
  allows: Allows;
  environment: Environment;
  /** Told of each live decision. */
  heard: (decided: Decided) => void;
  /** The rules that decide a share of the requests instead; absent for candidate rules themselves. */
  candidate: RuleSet | undefined;
  /** Of live turns; absent for candidate rules. */
  turns: TurnDecisions | undefined;
}

export function createEngine(parts: EngineParts): RouteEngine {
  const { set, config, allows, environment, heard, turns, candidate } = parts;

  function armFor(subject: RouteSubject): Arm | undefined {
    return candidate && config.rollout && armOf(config.rollout, subject);
  }
  function rulesOf(arm: Arm | undefined): RuleSet {
    return arm === 'candidate' && candidate ? candidate : set;
  }
  function decisionOf(rule: CompiledRule | undefined, arm: Arm | undefined, subject: RouteSubject): RouteDecision {
    const id = rule?.config.model ?? DEFAULT_MODEL;
    const model = id === DEFAULT_MODEL ? config.registry.defaultModel : (config.registry.find(id)?.id ?? id);
    checkModel(model, 'model', subject.principal, config, allows);
    const priority = subject.ask.priority ?? rule?.config.priority;
    return {
      rule: rule?.config.id ?? 'default',
      model,
      tools: rule ? (rule.config.tools ?? []) : undefined,
      explicit: false,
      ...(arm && { arm }),
      ...(priority !== undefined && { priority }),
    };
  }
  /** A tool continuation keeps its turn's model, unless it names another. */
  function continued(subject: RouteSubject): RouteDecision | undefined | Promise<RouteDecision | undefined> {
    const checked = (decision: RouteDecision | undefined): RouteDecision | undefined => {
      if (decision) checkModel(decision.model, 'model', subject.principal, config, allows);
      return decision;
    };
    const decision = turns?.recall(subject, config);
    return decision instanceof Promise ? decision.then(checked) : checked(decision);
  }
  function explicitDecision(subject: RouteSubject): RouteDecision | undefined {
    const entry = namedModel(subject, config, allows);
    if (!entry) return undefined;
    const { priority } = subject.ask;
    return { rule: 'none', model: entry.id, tools: undefined, explicit: true, ...(priority !== undefined && { priority }) };
  }

  /** A rule that takes everything is the default, whatever its name is. */
  const takesAll = (rule: CompiledRule | undefined) => rule === undefined || rule.condition.always === true;

  return {
    isDefault: (id) => takesAll([...set.rules, ...(candidate?.rules ?? [])].find(({ config: rule }) => rule.id === id)),
    decide(exchange) {
      const settled = (decision: RouteDecision, caught?: boolean): RouteDecision => {
        heard({ rule: decision.rule, caught, arm: decision.arm });
        turns?.remember(exchange, decision);
        return decision;
      };
      const byRules = (): RouteDecision | Promise<RouteDecision> => {
        const arm = armFor(exchange);
        const decided = (rule: CompiledRule | undefined) => settled(decisionOf(rule, arm, exchange), takesAll(rule));
        const rule = rulesOf(arm).first(new RouteQuestion(exchange, environment.now()));
        return rule instanceof Promise ? rule.then(decided) : decided(rule);
      };
      const known = explicitDecision(exchange) ?? continued(exchange);
      if (known instanceof Promise) return known.then((turn) => (turn ? settled(turn) : byRules()));
      return known ? settled(known) : byRules();
    },
    async explain(subject) {
      const explicit = explicitDecision(subject);
      if (explicit) {
        const how = subject.ask.preferModel !== undefined && subject.ask.preferModel !== 'auto' ? 'prefer_model' : 'model';
        return { decision: explicit, rule: explicit.rule, why: `${how} names ${explicit.model}, so the rules are skipped`, earlier: [] };
      }
      const turn = await continued(subject);
      if (turn) return { decision: turn, rule: turn.rule, why: 'a tool continuation keeps what its turn was decided by', earlier: [] };
      const arm = armFor(subject);
      const { rule, verdict, earlier } = await rulesOf(arm).firstWithReasons(new RouteQuestion(subject, environment.now()));
      const decision = decisionOf(rule, arm, subject);
      const why = `${verdict?.why ?? 'no rule hit, so the default model serves'}${arm === 'candidate' ? ', by the candidate rules of the rollout' : ''}`;
      return { decision, rule: decision.rule, why, ...(verdict?.score !== undefined && { score: verdict.score }), earlier };
    },
  };
}
