/** opentelemetry-proto, trace/v1 and common/v1, as far as a collector reads them: https://github.com/open-telemetry/opentelemetry-proto */
type Kind = 'string' | 'hex' | 'uint' | 'int' | 'fixed64' | 'fixed32' | 'double' | 'bool';
type Field = readonly [name: string, kind: Kind | Message, repeated?: 'repeated'];
interface Message {
  readonly [field: number]: Field;
}

const ANY_VALUE: { [field: number]: Field } = { 1: ['stringValue', 'string'], 2: ['boolValue', 'bool'], 3: ['intValue', 'int'], 4: ['doubleValue', 'double'] };
ANY_VALUE[5] = ['arrayValue', { 1: ['values', ANY_VALUE, 'repeated'] }];
const KEY_VALUE: Message = { 1: ['key', 'string'], 2: ['value', ANY_VALUE] };
const ATTRIBUTES = (field: number): Message => ({ [field]: ['attributes', KEY_VALUE, 'repeated'] });
const SPAN: Message = {
  1: ['traceId', 'hex'],
  2: ['spanId', 'hex'],
  3: ['traceState', 'string'],
  4: ['parentSpanId', 'hex'],
  5: ['name', 'string'],
  6: ['kind', 'uint'],
  7: ['startTimeUnixNano', 'fixed64'],
  8: ['endTimeUnixNano', 'fixed64'],
  ...ATTRIBUTES(9),
  10: ['droppedAttributesCount', 'uint'],
  12: ['droppedEventsCount', 'uint'],
  14: ['droppedLinksCount', 'uint'],
  15: ['status', { 2: ['message', 'string'], 3: ['code', 'uint'] }],
  16: ['flags', 'fixed32'],
};
const SCOPE: Message = { 1: ['name', 'string'], 2: ['version', 'string'], ...ATTRIBUTES(3), 4: ['droppedAttributesCount', 'uint'] };
const RESOURCE: Message = { ...ATTRIBUTES(1), 2: ['droppedAttributesCount', 'uint'] };
const REQUEST: Message = {
  1: [
    'resourceSpans',
    { 1: ['resource', RESOURCE], 2: ['scopeSpans', { 1: ['scope', SCOPE], 2: ['spans', SPAN, 'repeated'], 3: ['schemaUrl', 'string'] }, 'repeated'] },
    'repeated',
  ],
};
const WIRE_TYPE: Readonly<Record<Kind, number>> = { uint: 0, int: 0, bool: 0, fixed64: 1, double: 1, string: 2, hex: 2, fixed32: 5 };

export interface OtlpValue {
  stringValue?: string;
  boolValue?: boolean;
  intValue?: number;
  doubleValue?: number;
  arrayValue?: { values: OtlpValue[] };
}
export interface OtlpAttribute {
  key: string;
  value: OtlpValue;
}
export interface OtlpSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  /** Beyond 2^53. */
  startTimeUnixNano: bigint;
  endTimeUnixNano: bigint;
  attributes?: OtlpAttribute[];
  status: { code: number };
}
export interface OtlpRequest {
  resourceSpans: { resource: { attributes: OtlpAttribute[] }; scopeSpans: { scope: { name: string }; spans: OtlpSpan[] }[] }[];
}

/** An `ExportTraceServiceRequest`, read by the letter: a field that the protocol does not have, or of another wire type, is refused. */
export function readOtlpRequest(bytes: Buffer): OtlpRequest {
  return new Reader(bytes).message(REQUEST) as object as OtlpRequest;
}

class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }
  message(fields: Message): Record<string, unknown> {
    const out: Record<string, unknown> = {};
    while (this.#at < this.#bytes.length) {
      const tag = Number(this.#varint());
      const field = fields[tag >>> 3];
      if (field === undefined) throw new Error(`the protocol has no field ${tag >>> 3} here`);
      const [name, kind, repeated] = field;
      const value = this.#value(kind, tag & 7, name);
      if (repeated) out[name] = [...((out[name] as unknown[] | undefined) ?? []), value];
      else if (name in out) throw new Error(`${name} stands twice`);
      else out[name] = value;
    }
    return out;
  }
  #value(kind: Kind | Message, wireType: number, name: string): unknown {
    const expected = typeof kind === 'string' ? WIRE_TYPE[kind] : 2;
    if (wireType !== expected) throw new Error(`${name} has wire type ${wireType} instead of ${expected}`);
    if (typeof kind !== 'string') return new Reader(this.#take(Number(this.#varint()))).message(kind);
    if (kind === 'string') return new TextDecoder('utf-8', { fatal: true }).decode(this.#take(Number(this.#varint())));
    if (kind === 'hex') return this.#take(Number(this.#varint())).toString('hex');
    if (kind === 'fixed64') return this.#take(8).readBigUInt64LE();
    if (kind === 'double') return this.#take(8).readDoubleLE();
    if (kind === 'fixed32') return this.#take(4).readUInt32LE();
    const number = this.#varint();
    if (kind === 'bool') return number === 1n;
    return Number(BigInt.asIntN(64, number));
  }
  #varint(): bigint {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.#take(1)[0] ?? 0;
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  }
  #take(length: number): Buffer {
    const part = this.#bytes.subarray(this.#at, this.#at + length);
    if (part.length < length) throw new Error('the message ends too early');
    this.#at += length;
    return part;
  }
}
