import { createSocket } from 'node:dgram';

export const MODELS_NAME = 'models.test';
/** well; every answer this many ms late; no answer at all; "the server failed". */
export type NamesMood = 'well' | number | 'silent' | 'failing';

export interface Names {
  mood: NamesMood;
  /** Questions that came. */
  readonly asked: number;
  close(): void;
}

/** A name server (RFC 1035) that knows one name's A record and can be slow, silent or ill. */
export async function createNames(address: string, answer: string): Promise<Names> {
  const socket = createSocket('udp4');
  const names = { mood: 'well' as NamesMood, asked: 0, close: () => socket.close() };
  socket.on('message', (question, from) => {
    names.asked++;
    const { mood } = names;
    if (mood === 'silent') return;
    const reply = mood === 'failing' ? refuse(question) : reply4(question, answer);
    const send = (): void => {
      try {
        socket.send(reply, from.port, from.address);
      } catch {
        // Closed in the meantime.
      }
    };
    if (typeof mood === 'number') setTimeout(send, mood).unref();
    else send();
  });
  await new Promise<void>((done, failed) => socket.once('error', failed).bind(53, address, done));
  socket.unref();
  return names;
}

/** Its header, as an answer: QR, RD, RA and the code. */
function toHead(question: Buffer, code: number, answers: number): Buffer {
  const head = Buffer.from(question.subarray(0, 12));
  head.writeUInt16BE(0x8180 | code, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(answers, 6);
  head.writeUInt32BE(0, 8);
  return head;
}
function questionOf(message: Buffer): { bytes: Buffer; name: string; type: number } {
  let at = 12;
  const labels: string[] = [];
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length));
    at += length + 1;
  }
  return { bytes: message.subarray(12, at + 5), name: labels.join('.').toLowerCase(), type: message.readUInt16BE(at + 1) };
}
function refuse(message: Buffer): Buffer {
  return Buffer.concat([toHead(message, 2, 0), questionOf(message).bytes]);
}
function reply4(message: Buffer, address: string): Buffer {
  const { bytes, name, type } = questionOf(message);
  if (name !== MODELS_NAME) return Buffer.concat([toHead(message, 3, 0), bytes]);
  if (type !== 1) return Buffer.concat([toHead(message, 0, 0), bytes]);
  // The name again (a pointer to the question), A, IN, a life of 0 s, 4 bytes.
  const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)]);
  return Buffer.concat([toHead(message, 0, 1), bytes, record]);
}
