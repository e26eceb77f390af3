import { language } from './i18n.js';

const locale = () => (language() === 'zh' ? 'zh-CN' : 'en-GB');

export function number(value, digits = 0) {
  return Number.isFinite(value) ? value.toLocaleString(locale(), { maximumFractionDigits: digits }) : '–';
}
export function milliseconds(value) {
  if (!Number.isFinite(value)) return '–';
  if (value >= 10_000) return `${number(value / 1000, 1)} s`;
  return `${number(value, value < 10 ? 2 : value < 100 ? 1 : 0)} ms`;
}
export function usd(value) {
  if (!Number.isFinite(value)) return '–';
  return `$${value.toLocaleString(locale(), { minimumFractionDigits: 2, maximumFractionDigits: value === 0 || value >= 1 ? 2 : value < 0.01 ? 6 : 4 })}`;
}
export function percent(part) {
  return Number.isFinite(part) ? `${number(part * 100, part < 0.1 ? 1 : 0)} %` : '–';
}
export function time(iso) {
  return iso
    ? new Date(iso).toLocaleString(locale(), { month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false })
    : '–';
}
export function short(id, length = 8) {
  return id.length > length + 1 ? `${id.slice(0, length)}…` : id;
}
export function statusKind(status) {
  return status >= 500 ? 'bad' : status >= 400 ? 'warn' : 'good';
}
