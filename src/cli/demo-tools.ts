import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What hermes posts to a tool: SPEC section 8. */
interface ToolRequest {
  tool?: string;
  request_id?: string;
  params?: Record<string, unknown>;
}

const MAX_BODY_BYTES = 1024 ** 2;
const CITIES = ['上海青浦分拨中心', '杭州转运中心', '北京朝阳营业部', '广州白云分拨中心', '成都双流转运中心'];
const GOODS = ['无线耳机 (wireless earbuds)', '保温杯 (thermos)', '机械键盘 (mechanical keyboard)', '登山包 (hiking pack)', '空气炸锅 (air fryer)'];
const STATES = ['已发货 (shipped)', '运输中 (in transit)', '派送中 (out for delivery)', '已签收 (delivered)'];

/** The business side of the demo: an order desk that answers every id plausibly, and always the same. Port 0 takes a free one. */
export async function startDemoTools(port: number): Promise<{ port: number; close(): Promise<void> }> {
  const refunds = new Map<string, unknown>();
  const server = createServer((request, response) => {
    answer(request, refunds).then(
      ({ status, body }) => response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(JSON.stringify(body)),
      () => response.writeHead(400).end(),
    );
  });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
  return { port: (server.address() as AddressInfo).port, close: () => close(server) };
}

async function answer(request: IncomingMessage, refunds: Map<string, unknown>): Promise<{ status: number; body: unknown }> {
  const { tool, request_id, params = {} } = await readRequest(request);
  if (tool === 'order.query') return { status: 200, body: toOrder(String(params.order_id ?? '')) };
  if (tool === 'customer.history') return { status: 200, body: toHistory(String(params.customer_id ?? '')) };
  if (tool !== 'refund.apply') return { status: 404, body: { error: `没有这个工具 (no such tool): ${String(tool)}` } };
  // Idempotent by request id, as every tool with side effects must be: the same id twice is one refund.
  const known = refunds.get(String(request_id));
  if (known !== undefined) return { status: 200, body: known };
  const refund = toRefund(String(params.order_id ?? ''), Number(params.amount ?? 199), refunds.size + 1);
  refunds.set(String(request_id), refund);
  return { status: 200, body: refund };
}

function toOrder(orderId: string): Record<string, unknown> {
  const seed = toSeed(orderId);
  const day = (offset: number): string => `2024-05-${String(15 + offset).padStart(2, '0')}`;
  const steps = [
    { time: `${day(0)} 21:14`, status: '商家已发货 (handed to the carrier)' },
    { time: `${day(1)} 06:40`, status: `到达 ${pick(CITIES, seed)} (arrived)` },
    { time: `${day(2)} 11:05`, status: `离开 ${pick(CITIES, seed)},发往 ${pick(CITIES, seed + 2)} (in transit)` },
    { time: `${day(3)} 08:20`, status: `到达 ${pick(CITIES, seed + 2)} (arrived)` },
  ];
  return {
    order_id: orderId,
    state: pick(STATES, seed),
    item: pick(GOODS, seed),
    amount: 99 + (seed % 10) * 20,
    currency: 'CNY',
    carrier: '顺丰速运 (SF Express)',
    tracking_number: `SF${String(1_000_000_000 + (seed % 900_000_000))}`,
    logistics: steps.slice(0, 2 + (seed % 3)),
  };
}

function toHistory(customerId: string): Record<string, unknown> {
  const seed = toSeed(customerId);
  return {
    customer_id: customerId,
    level: pick(['普通会员 (regular)', '银卡 (silver)', '金卡 (gold)'], seed),
    orders: [0, 1, 2].map((index) => ({
      order_id: `2024${String(410 + index * 17 + (seed % 9))}`,
      item: pick(GOODS, seed + index),
      amount: 59 + ((seed + index) % 8) * 35,
    })),
    after_sales: seed % 2 === 0 ? [] : [{ type: '退货 (return)', order_id: `2024${410 + (seed % 9)}`, result: '已退款 (refunded)' }],
  };
}

function toRefund(orderId: string, amount: number, count: number): Record<string, unknown> {
  return {
    refund_id: `RF${String(20_240_000 + count)}`,
    order_id: orderId,
    amount,
    currency: 'CNY',
    state: '已受理 (accepted)',
    note: '退款将在 1–3 个工作日内原路退回 (back to the original payment within 1–3 working days)',
  };
}

async function readRequest(request: IncomingMessage): Promise<ToolRequest> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request) {
    bytes += (piece as Buffer).length;
    if (bytes > MAX_BODY_BYTES) throw new RangeError('the body is too large');
    pieces.push(piece as Buffer);
  }
  const value: unknown = JSON.parse(Buffer.concat(pieces).toString('utf8'));
  if (typeof value !== 'object' || value === null) throw new TypeError('the body is no object');
  return value;
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

function toSeed(text: string): number {
  return [...text].reduce((sum, character) => (sum * 31 + (character.codePointAt(0) ?? 0)) >>> 0, 7);
}
function pick(list: readonly string[], seed: number): string {
  return list[seed % list.length] ?? '';
}
