# Any image with Node.js 20 or later and npm will do: name another where no public registry can be reached.
ARG BASE_IMAGE=node:24-trixie-slim

FROM ${BASE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY src src
RUN npm run build && npm prune --omit=dev --ignore-scripts

FROM ${BASE_IMAGE}
LABEL roboco.sidecar="1" \
      org.opencontainers.image.title="roboco-sidecar" \
      org.opencontainers.image.description="Throwaway Postgres, Redis and Mongo for labelled agent containers" \
      org.opencontainers.image.licenses="MIT"
ENV NODE_ENV=production
RUN mkdir -p /roboco && chown 65532:65532 /roboco
WORKDIR /app
COPY --from=build /build/package.json ./
COPY --from=build /build/node_modules node_modules
COPY --from=build /build/dist dist
COPY assets assets
ENTRYPOINT ["/app/assets/entrypoint"]
CMD ["run"]
# Pulling images may take minutes; a success within the start period counts at once.
HEALTHCHECK --interval=3s --timeout=5s --start-period=10m --retries=3 CMD ["node", "/app/dist/main.js", "healthcheck"]
