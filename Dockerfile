# syntax=docker/dockerfile:1

FROM node:24.11-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
# Scripts of packages are not run: nothing that hermes needs is compiled on install.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY scripts/build.mjs scripts/build.mjs
COPY src src
COPY plugins plugins
COPY console console
RUN npm run build

FROM node:24.11-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund && npm cache clean --force

FROM node:24.11-bookworm-slim
LABEL org.opencontainers.image.title="hermes-agent" org.opencontainers.image.licenses="MIT"
ENV NODE_ENV=production HERMES_CONFIG=/app/config/hermes.yaml PORT=8080
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json README.md LICENSE ./
COPY config config
# The only place that is written to; a volume in every deployment that keeps anything.
RUN install -d -o node -g node data
USER 1000:1000
EXPOSE 8080
VOLUME /app/data
STOPSIGNAL SIGTERM
# No curl in the image: Node asks itself. Liveness only; whether it is ready is the load balancer's question.
HEALTHCHECK --interval=10s --timeout=3s --start-period=15s --retries=3 CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT || 8080}/healthz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# Exec form: hermes is process 1 and gets SIGTERM itself; it starts no children that would have to be reaped.
ENTRYPOINT ["node", "dist/src/main.js"]
CMD ["serve"]
