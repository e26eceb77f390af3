import { z } from 'zod';
import { didYouMean, oneOf, type Path } from './problems.ts';

type Issue = z.core.$ZodIssue;
type RawIssue = z.core.$ZodRawIssue;

const NOUNS: Readonly<Record<string, string>> = {
  string: 'text (quote it when it looks like a number)',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list: [a, b]',
  object: 'a block of keys',
  record: 'a block of keys',
};

/** Letters alone, and few: no secret looks like that. */
const PLAIN_WORD = /^[a-z]+(?:[_ -][a-z]+)*$/i;

/** zod's error map: says what to do, and never a value that may be a secret in the wrong place. */
export function toMessage(issue: RawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined ? 'is missing' : `must be ${NOUNS[issue.expected] ?? issue.expected}`;
    case 'invalid_value': {
      const known = issue.values.map(String);
      const input = typeof issue.input === 'string' ? issue.input : '';
      return `must be ${known.length === 1 ? known[0] : `one of ${known.join(', ')}`}${PLAIN_WORD.test(input) ? `, not \`${input}\`` : ''}${didYouMean(input, known)}`;
    }
    case 'too_small':
      if (issue.origin === 'string' || issue.origin === 'array')
        return `needs at least ${issue.minimum} ${issue.origin === 'array' ? 'in its list' : 'characters'}`;
      return `must be ${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}`;
    case 'too_big':
      return issue.origin === 'string' ? `must be ${issue.maximum} characters at most` : `must be at most ${issue.maximum}`;
    case 'unrecognized_keys': {
      const known = issue.inst instanceof z.ZodObject ? Object.keys(issue.inst.shape) : [];
      return issue.keys.map((key) => `is not known here${didYouMean(key, known) || `; known: ${oneOf(known)}`}`).join('\n');
    }
    case 'invalid_format':
      return 'has the wrong form';
    default:
      return undefined;
  }
}

/** Reports every issue at its place; of a union the form that comes nearest speaks. */
export function reportIssues(issues: readonly Issue[], report: (path: Path, message: string) => void, base: Path = []): void {
  for (const issue of issues) {
    const path = [...base, ...issue.path.filter((part) => typeof part !== 'symbol')];
    if (issue.code === 'unrecognized_keys') {
      const messages = issue.message.split('\n');
      issue.keys.forEach((key, index) => {
        report([...path, key], messages[index] ?? 'is not known here');
      });
    } else if (issue.code === 'invalid_union') reportUnion(issue.errors, report, path);
    else if (issue.code === 'invalid_key') reportIssues(issue.issues, report, path);
    else report(path, issue.message);
  }
}

function reportUnion(branches: readonly (readonly Issue[])[], report: (path: Path, message: string) => void, path: Path): void {
  const isOfThisForm = (branch: readonly Issue[]) => !branch.some((issue) => issue.code === 'invalid_type' && issue.path.length === 0);
  const near = branches.filter(isOfThisForm).sort((a, b) => a.length - b.length)[0];
  if (near) {
    reportIssues(near, report, path);
    return;
  }
  const forms = branches.map((branch) => branch[0]?.message.replace(/^must be /, '') ?? '').filter((form) => form !== '');
  report(path, forms.includes('is missing') ? 'is missing' : `must be ${[...new Set(forms)].join(', or ')}`);
}
