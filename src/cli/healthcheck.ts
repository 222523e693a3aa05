import { get } from "node:http";
import type { Config } from "../config.ts";

const timeoutMs = 4000;

/** Asks the running sidecar for /readyz: exit code 0 when it is ready, else 1. */
export const healthcheck = ({ listen }: Pick<Config, "listen">): Promise<{ code: number; output: string }> =>
  new Promise((resolve) => {
    const host = listen.host === "0.0.0.0" || listen.host === "::" ? "127.0.0.1" : listen.host;
    const request = get({ host, port: listen.port, path: "/readyz", timeout: timeoutMs }, (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (chunk) => {
        body += chunk;
      });
      response.on("end", () => resolve({ code: response.statusCode === 200 ? 0 : 1, output: body.trim() }));
    });
    request.on("timeout", () => request.destroy(new Error(`no answer within ${timeoutMs / 1000} s`)));
    request.on("error", (error) =>
      resolve({ code: 1, output: `no sidecar answers at ${host}:${listen.port}: ${error.message}` }),
    );
  });
