import type { ChatRequest, FunctionTool } from '../../wire/chat.ts';
import { isRecord } from '../../wire/json.ts';

export interface ToolChoice {
  name: string;
  arguments: string;
}
export interface MissingParams {
  missing: string[];
}

/** What Chinese customers say, by the parts of tools' names. */
const WORDS: Readonly<Record<string, RegExp>> = {
  order: /订单|物流|快递|包裹|发货|order|package|parcel|deliver|shipping/i,
  query: /查|哪|怎么还没|什么时候|状态|到哪|where|when|status|track|look up|check/i,
  refund: /退款|退货|退钱|refund|money back/i,
  weather: /天气|气温|下雨|weather|temperature|rain/i,
  time: /几点|时间|time/i,
  invoice: /发票|invoice/i,
  search: /搜|查找|search|find/i,
};
/** A tool is only called when the question is about what it is about, not for its verb alone. */
const VERBS = new Set(['query', 'get', 'search', 'apply', 'list', 'create', 'find']);

/** The tool on offer that the newest question fits best, with its params found in the question; undefined: none fits. */
export function chooseTool(request: ChatRequest, question: string): ToolChoice | MissingParams | undefined {
  const { tools = [], tool_choice } = request;
  if (tool_choice === 'none' || tools.length === 0) return undefined;
  const forced = isRecord(tool_choice) && isRecord(tool_choice.function) ? tool_choice.function.name : undefined;
  const fitting = tools
    .filter((tool) => tool.type === 'function' && (forced === undefined || tool.function.name === forced))
    .map((tool) => ({ tool, score: scoreOf(tool, question) }))
    .sort((a, b) => b.score - a.score)[0];
  if (fitting === undefined || (fitting.score === 0 && forced === undefined && tool_choice !== 'required')) return undefined;
  const { name, parameters } = fitting.tool.function;
  const { params, missing } = findParams(parameters, question);
  if (missing.length > 0 && forced === undefined && tool_choice !== 'required') return { missing };
  return { name, arguments: JSON.stringify(params) };
}

function scoreOf(tool: FunctionTool, question: string): number {
  const parts = tool.function.name.toLowerCase().split(/[^a-z0-9]+|__/);
  let score = 0;
  let about = false;
  for (const part of parts) {
    const hit = WORDS[part]?.test(question) ?? (part.length > 2 && question.toLowerCase().includes(part));
    if (!hit) continue;
    score += part === 'refund' ? 3 : 1;
    about ||= !VERBS.has(part);
  }
  return about ? score : 0;
}

function findParams(schema: Record<string, unknown> | undefined, question: string): { params: Record<string, unknown>; missing: string[] } {
  const properties = isRecord(schema?.properties) ? schema.properties : {};
  const required = Array.isArray(schema?.required) ? schema.required.map(String) : [];
  const params: Record<string, unknown> = {};
  for (const [name, property] of Object.entries(properties)) {
    const value = findValue(name, isRecord(property) ? property : {}, question);
    if (value !== undefined) params[name] = value;
  }
  return { params, missing: required.filter((name) => !(name in params)) };
}

const ORDER_NUMBER = /(?:订单号?|单号|order|#)[\s:：#是为]*(?:number|no\.?)?[\s:：#]*([a-z]{0,4}-?\d[\w-]*)/i;
const CITIES = /北京|上海|广州|深圳|杭州|成都|武汉|西安|南京|Beijing|Shanghai|London|Paris|Berlin|New York|Tokyo/i;

function findValue(name: string, property: Record<string, unknown>, question: string): unknown {
  if (/city|location|place/.test(name)) return CITIES.exec(question)?.[0];
  if (/amount|price|money/.test(name)) return toNumber(/(\d+(?:\.\d+)?)\s*(?:元|块|yuan|usd|dollars?)/i.exec(question)?.[1]);
  if (/(?:_|^)(?:id|no|number)$/.test(name)) {
    const found = ORDER_NUMBER.exec(question)?.[1] ?? /(?<![\w.])[a-z]{0,4}-?\d{3,}[\w-]*/i.exec(question)?.[0];
    return property.type === 'integer' || property.type === 'number' ? toNumber(found) : found;
  }
  if (Array.isArray(property.enum)) return property.enum.find((one) => question.includes(String(one)));
  if (property.type === 'integer' || property.type === 'number') return toNumber(/\d+/.exec(question)?.[0]);
  return /query|question|text|keyword|reason/.test(name) ? question : /[“"「']([^”"」']+)[”"」']/.exec(question)?.[1];
}

function toNumber(text: string | undefined): number | undefined {
  return text === undefined || Number.isNaN(Number(text)) ? undefined : Number(text);
}
