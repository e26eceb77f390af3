import { ANTHROPIC_CASES, compareAnthropic, openAnthropicHouse, VERSIONS } from './anthropic-run.ts';
import { CASES } from './openai-cases.ts';
import { compare, openHouse } from './openai-run.ts';

export interface Result {
  sdk: string;
  group: string;
  name: string;
  same: boolean;
  /** What is compared where hermes' words are its own. */
  why: string | undefined;
  direct: unknown;
  hermes: unknown;
}

/** All calls, each once against the stand-in for the vendor and once through hermes. */
export async function runAll(): Promise<{ results: Result[]; violations: string[] }> {
  const results: Result[] = [];
  const house = await openHouse();
  try {
    for (const one of CASES) results.push({ sdk: 'openai', group: one.group, name: one.name, why: one.differs?.why, ...(await compare(house, one)) });
  } finally {
    await house.close();
  }
  const other = await openAnthropicHouse();
  try {
    for (const version of VERSIONS)
      for (const one of ANTHROPIC_CASES)
        results.push({
          sdk: '@anthropic-ai/sdk',
          group: `anthropic-version ${version}`,
          name: one.name,
          why: one.differs?.why,
          ...(await compareAnthropic(other, version, one)),
        });
  } finally {
    await other.close();
  }
  return { results, violations: house.fake.violations };
}

/** The page that tells of a run. */
export function toCompatibilityPage(results: readonly Result[]): string {
  const lines = [
    '# Compatibility',
    '',
    'Made by `npm run compatibility` from a run of the official SDKs: each call once against a strict stand-in for the vendor, once',
    'through hermes in front of it. *Same* means the same events in the same order, the same objects and the same exceptions, but',
    'for the headers and fields that hermes adds. A test fails when this page is not what a run gives.',
  ];
  for (const title of new Set(results.map(({ sdk, group }) => `\`${sdk}\`: ${group}`))) {
    lines.push('', `## ${title}`, '', '| call | through hermes |', '| --- | --- |');
    for (const { name, same, why } of results.filter(({ sdk, group }) => `\`${sdk}\`: ${group}` === title))
      lines.push(`| ${name} | ${same ? 'same' : '**differs**'}${why ? ` (compared: ${why})` : ''} |`);
  }
  return `${lines.join('\n')}\n`;
}
