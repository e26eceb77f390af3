import type { GuardConfig } from '../../src/contracts/guards.ts';
import { compileGuards, type GuardSet, type Hit } from '../../src/guards/rules.ts';
import { TextWindow } from '../../src/guards/text-window.ts';
import { Vault } from '../../src/guards/vault.ts';
import { createWordFinder } from '../../src/routing/word-finder.ts';
import { makeConfig } from '../config/make-config.ts';

/** What stands for secrets and people in these tests; each passes its own check. */
export const PLANTED = {
  card: ['4111 1111 1111 1111', '4111111111111111', '5500-0000-0000-0004', '3782 822463 10005', '６２２２０２１２３４５６７８９４'],
  phone: ['13812345678', '+86 138-1234-5678', '+1 (415) 555-0132', '+44 20 7946 0958', '415-555-0132', '010-12345678'],
  email: ['bob.smith+x@mail.example.co.uk', 'zhang_wei@公司.example.com'.replace('公司.', '')],
  cn_id: ['11010519491231002X', '440524188001010014'],
  iban: ['GB82 WEST 1234 5698 7654 32', 'DE89370400440532013000'],
  api_key: ['sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z', 'AKIAIOSFODNN7EXAMPLE', `ghp_${'a1B2'.repeat(9)}`, 'xoxb-1234567890-abcdefABCDEF'],
  jwt: ['eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U'],
  private_key: [`-----BEGIN RSA PRIVATE KEY-----\n${'MIIEowIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo4lgOEePzNm0t\n'.repeat(3)}-----END RSA PRIVATE KEY-----`],
} as const;

export function guardSet(guards: Partial<GuardConfig>[]): GuardSet {
  return compileGuards(makeConfig({ guards }), createWordFinder);
}

export const everything: Partial<GuardConfig>[] = [
  { id: 'people', kind: 'pii', action: 'redact' },
  { id: 'keys', kind: 'secrets', action: 'redact' },
  { id: 'words', kind: 'block_list', words: ['tiger', '内部代号', 'blue  moon'], action: 'redact' },
];

/** The text as it comes out of a window that it goes into in these pieces. */
export function through(pieces: readonly string[], set: GuardSet, more: { vault?: Vault; json?: boolean; hits?: Hit[] } = {}): string {
  const vault = more.vault ?? new Vault();
  const window = new TextWindow({
    rules: set.output,
    vault,
    json: more.json ?? false,
    onHit: (hit) => void more.hits?.push(hit),
    replace: ({ kind, guard }, value) => (guard.action === 'redact' ? vault.mask(kind, value) : undefined),
  });
  return pieces.map((piece) => window.push(piece)).join('') + window.push('', true);
}
