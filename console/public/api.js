/** The admin key lives in this variable and nowhere else: it is gone when the page is. */
let key;
let onRefused = () => {};

export function signIn(newKey, refused) {
  key = newKey;
  onRefused = refused;
}
export function signOut() {
  key = undefined;
}

export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function ask(path, init = {}) {
  const response = await fetch(path, {
    ...init,
    headers: { authorization: `Bearer ${key}`, ...(init.body === undefined ? {} : { 'content-type': 'application/json' }) },
  });
  const text = await response.text();
  if (response.ok) return text;
  let message = response.statusText;
  try {
    message = JSON.parse(text).error.message;
  } catch {
    // Not hermes' own error: the status says what there is to say.
  }
  if (key !== undefined && response.status === 401) onRefused(message);
  throw new ApiError(message, response.status);
}

export const getText = (path) => ask(path);
export const get = async (path) => JSON.parse(await ask(path));
export const post = async (path, body) => JSON.parse(await ask(path, { method: 'POST', body: JSON.stringify(body ?? {}) }));

/** A path with the parameters that are set. */
export function withQuery(path, parameters) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== undefined && value !== ''));
  return query.size === 0 ? path : `${path}?${query}`;
}
