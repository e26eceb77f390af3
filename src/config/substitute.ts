/** `${NAME}` and `${NAME:-default}`; `$${` is a plain `${`. */
const REFERENCE = /\$\$\{|\$\{([^}]*)\}?/g;
const NAME = /^([A-Za-z_][A-Za-z0-9_]*)(:-([\s\S]*))?$/;

/**
 * Fills environment values into a text. An unset or blank one without a default is refused by its name: an address or a key
 * that is silently empty becomes somebody else's host, or `Bearer undefined`. The problem never holds a value.
 */
export function substitute(text: string, env: Readonly<Record<string, string | undefined>>): { text: string; problem?: string } {
  const problems: string[] = [];
  const out = text.replace(REFERENCE, (whole, inner: string | undefined) => {
    if (whole === '$${') return '${';
    const parts = whole.endsWith('}') ? NAME.exec(inner ?? '') : null;
    const name = parts?.[1];
    if (name === undefined) {
      problems.push(`has a $\{…} that is not $\{NAME} or $\{NAME:-default}; a plain $\{ is written $$\{`);
      return whole;
    }
    const value = Object.hasOwn(env, name) ? env[name] : undefined;
    if (value !== undefined && value.trim() !== '') return value;
    if (parts?.[2] !== undefined) return parts[3] ?? '';
    problems.push(
      `the environment variable ${name} is ${value === undefined ? 'not set' : value === '' ? 'empty' : 'blank'}: set it, or write \${${name}:-default}`,
    );
    return '';
  });
  return problems.length === 0 ? { text: out } : { text: out, problem: [...new Set(problems)].join('; ') };
}
