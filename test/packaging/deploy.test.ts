import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse, parseAllDocuments } from 'yaml';
import { loadConfig } from '../../src/config/load.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (name: string): string => readFileSync(join(root, name), 'utf8');

/** What these tests look at; anything else in a manifest is left alone. */
interface Container {
  image: string;
  ports: { name: string; containerPort: number }[];
  env: { name: string; value?: string }[];
  envFrom: { secretRef?: { name: string } }[];
  securityContext: { allowPrivilegeEscalation: boolean; readOnlyRootFilesystem: boolean; capabilities: { drop: string[] } };
  volumeMounts: { name: string; mountPath: string; readOnly?: boolean }[];
  startupProbe: Probe;
  readinessProbe: Probe;
  livenessProbe: Probe;
}
interface Probe {
  httpGet: { path: string; port: string };
}
interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string };
  spec: Record<string, never> & {
    replicas: number;
    minAvailable: number;
    minReplicas: number;
    strategy: { rollingUpdate: { maxUnavailable: number } };
    template: {
      spec: {
        terminationGracePeriodSeconds: number;
        securityContext: { runAsNonRoot: boolean; runAsUser: number };
        containers: Container[];
        volumes: { name: string; configMap?: { name: string } }[];
      };
    };
    endpoints: { port: string; path: string }[];
    ports: { name: string; targetPort: string }[];
    podSelector: { matchLabels: Record<string, string> };
    policyTypes: string[];
    metrics: { type: string; pods?: { metric: { name: string } } }[];
  };
}

describe('the image', () => {
  const lines = read('Dockerfile')
    .replace(/\\\n/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('#'));
  const last = lines.slice(lines.findLastIndex((line) => line.startsWith('FROM')));

  it('copies only what is there', () => {
    const sources = lines.filter((line) => line.startsWith('COPY') && !line.includes('--from=')).flatMap((line) => line.split(/\s+/).slice(1, -1));
    assert.deepEqual(
      sources.filter((source) => !existsSync(join(root, source))),
      [],
    );
    const ignored = read('.dockerignore').split('\n');
    for (const source of sources) assert.ok(ignored.includes(`!${source}`), `.dockerignore keeps ${source} out`);
  });
  it('is pinned, runs as nobody special, and gets its signals itself', () => {
    const bases = lines.filter((line) => line.startsWith('FROM'));
    for (const base of bases) assert.match(base, /node:2[0-9]\.\d+-\w+-slim/);
    assert.ok(last.includes('USER 1000:1000'));
    assert.ok(last.some((line) => /^ENTRYPOINT \["node",/.test(line)));
    assert.ok(lines.filter((line) => line.includes('npm ci')).every((line) => line.includes('--ignore-scripts')));
  });
  it('asks after its health with Node alone', () => {
    const check = last.find((line) => line.startsWith('HEALTHCHECK')) ?? '';
    const command = JSON.parse(check.slice(check.indexOf('['))) as string[];
    assert.equal(command[0], 'node');
    assert.match(command.at(-1) ?? '', /\/healthz/);
    assert.doesNotMatch(check, /curl|wget/);
  });
  it('carries no development dependency', () => {
    assert.ok(lines.some((line) => line.includes('npm ci --omit=dev')));
    assert.ok(last.some((line) => line.includes('--from=dependencies') && line.includes('node_modules')));
    assert.ok(!last.some((line) => line.includes('--from=build') && line.includes('node_modules')));
  });
});

describe('docker compose', () => {
  interface Service {
    profiles?: string[];
    environment?: Record<string, string>;
    volumes?: string[];
    ports?: string[];
    image?: string;
    read_only?: boolean;
    depends_on?: Record<string, { condition: string }> | string[];
  }
  const { services, volumes } = parse(read('docker-compose.yml')) as { services: Record<string, Service>; volumes: Record<string, null> };

  it('starts hermes and Redis; the others by profile', () => {
    const plain = Object.entries(services).filter(([, service]) => !service.profiles);
    assert.deepEqual(plain.map(([name]) => name).sort(), ['hermes', 'redis']);
    assert.deepEqual(services.postgres?.profiles, ['postgres']);
    assert.deepEqual([services.prometheus?.profiles, services.grafana?.profiles], [['observability'], ['observability']]);
  });
  it('does not start without a key of your own', () => {
    assert.match(services.hermes?.environment?.API_KEY ?? '', /^\$\{API_KEY:\?/);
    assert.doesNotMatch(read('docker-compose.yml'), /PASSWORD: +[^$\s]/);
  });
  it('keeps what has to last in volumes, and nothing else is written', () => {
    assert.equal(services.hermes?.read_only, true);
    assert.ok(services.hermes?.volumes?.includes('./data:/app/data'));
    assert.ok(services.hermes?.volumes?.some((volume) => volume.startsWith('./config:/app/config')));
    const named = Object.values(services)
      .flatMap((service) => service.volumes ?? [])
      .filter((volume) => !volume.startsWith('.'));
    for (const volume of named) assert.ok((volume.split(':')[0] ?? '') in volumes, volume);
  });
  it('pins every image, and mounts only what is there', () => {
    for (const [name, { image }] of Object.entries(services)) assert.match(image ?? '', /:[^:]*\d+\.?\d*|\$\{HERMES_VERSION/, name);
  });
  it('opens Grafana to this machine alone', () => {
    assert.ok(services.grafana?.ports?.every((port) => port.startsWith('127.0.0.1:')));
  });
});

describe('Kubernetes', () => {
  const folder = join(root, 'deploy/kubernetes');
  const list = parse(read('deploy/kubernetes/kustomization.yaml')) as {
    resources: string[];
    labels: { pairs: Record<string, string>; includeSelectors: boolean }[];
    configMapGenerator: { name: string; files: string[]; options: { disableNameSuffixHash: boolean } }[];
  };
  const manifests = list.resources.flatMap((name) =>
    parseAllDocuments(readFileSync(join(folder, name), 'utf8')).map((document) => document.toJSON() as Manifest),
  );
  const one = (kind: string): Manifest => {
    const found = manifests.filter((manifest) => manifest.kind === kind);
    assert.equal(found.length, 1, kind);
    return found[0] as Manifest;
  };
  const pod = one('Deployment').spec.template.spec;
  const container = pod.containers[0] as Container;

  it('lists every manifest of the folder', () => {
    const files = readdirSync(folder).filter((name) => name !== 'kustomization.yaml' && name !== 'hermes.yaml');
    assert.deepEqual([...list.resources].sort(), files.sort());
    for (const manifest of manifests) assert.ok(manifest.apiVersion && manifest.metadata.name === 'hermes', manifest.kind);
  });
  it('has two replicas that are replaced one by one and never all evicted', () => {
    assert.equal(one('Deployment').spec.replicas, 2);
    assert.equal(one('Deployment').spec.strategy.rollingUpdate.maxUnavailable, 0);
    assert.equal(one('PodDisruptionBudget').spec.minAvailable, 1);
    assert.ok(one('HorizontalPodAutoscaler').spec.minReplicas >= 2);
    assert.ok(one('HorizontalPodAutoscaler').spec.metrics.some(({ pods }) => pods?.metric.name === 'hermes_requests_in_flight'));
  });
  it('asks readiness and liveness where they are', () => {
    assert.deepEqual(container.readinessProbe.httpGet, { path: '/readyz', port: 'http' });
    assert.deepEqual(container.livenessProbe.httpGet, { path: '/healthz', port: 'http' });
    assert.deepEqual(container.startupProbe.httpGet, { path: '/healthz', port: 'http' });
    assert.equal(container.ports[0]?.name, 'http');
    assert.deepEqual([one('Service').spec.ports[0]?.targetPort, one('ServiceMonitor').spec.endpoints[0]?.path], ['http', '/metrics']);
  });
  it('runs without rights and with a file system that cannot be written', () => {
    assert.deepEqual([pod.securityContext.runAsNonRoot, pod.securityContext.runAsUser], [true, 1000]);
    assert.deepEqual(container.securityContext, { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } });
    assert.ok(container.volumeMounts.some(({ mountPath }) => mountPath === '/app/data'));
    assert.deepEqual(one('NetworkPolicy').spec.policyTypes, ['Ingress', 'Egress']);
  });
  it('takes its secrets from a secret and its configuration from a folder that can change', () => {
    assert.deepEqual(container.envFrom, [{ secretRef: { name: 'hermes' } }]);
    const mount = container.volumeMounts.find(({ name }) => name === 'config');
    assert.equal(container.env.find(({ name }) => name === 'HERMES_CONFIG')?.value, `${mount?.mountPath}/hermes.yaml`);
    assert.equal(pod.volumes.find(({ name }) => name === 'config')?.configMap?.name, list.configMapGenerator[0]?.name);
    assert.equal(list.configMapGenerator[0]?.options.disableNameSuffixHash, true);
  });
  it('ends a pod after its drain, with a configuration that is good', () => {
    const { config, warnings } = loadConfig({
      file: join(folder, 'hermes.yaml'),
      env: { API_KEY: 'sk-test-3f9c1d7e5a2b48c6', OPENAI_API_KEY: 'sk-x', REDIS_URL: 'redis://r', DATABASE_URL: 'postgres://u@h/d' },
    });
    assert.ok(config.server.drain_delay_ms + config.server.drain_timeout_ms < pod.terminationGracePeriodSeconds * 1000);
    assert.deepEqual(warnings, []);
  });
});

describe('the systemd unit', () => {
  const unit = read('deploy/hermes.service');
  const value = (name: string): string | undefined => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1];
  it('checks before it starts, reloads by SIGHUP, and waits for the drain', () => {
    assert.match(value('ExecStartPre') ?? '', /hermes config check$/);
    assert.match(value('ExecStart') ?? '', /hermes serve$/);
    assert.match(value('ExecReload') ?? '', /-HUP \$MAINPID/);
    assert.ok(Number(value('TimeoutStopSec')) > 30);
  });
  it('runs as a user of its own that can write one folder', () => {
    assert.equal(value('User'), 'hermes');
    assert.deepEqual([value('ProtectSystem'), value('NoNewPrivileges'), value('StateDirectory')], ['strict', 'true', 'hermes']);
  });
});
