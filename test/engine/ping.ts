import { request } from "node:http";

/** GET of an Engine's API over its unix socket; undefined when nothing answers with 200. */
export function get(socketPath: string, path: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const call = request({ socketPath, path, timeout: 2000 }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (text: string) => {
        body += text;
      });
      response.on("end", () => resolve(response.statusCode === 200 ? body : undefined));
    });
    call.on("timeout", () => call.destroy());
    call.on("error", () => resolve(undefined));
    call.end();
  });
}

export async function engineVersion(socketPath: string): Promise<{ version: string; apiVersion: string } | undefined> {
  const body = await get(socketPath, "/version");
  if (body === undefined) return undefined;
  const { Version, ApiVersion } = JSON.parse(body) as { Version: string; ApiVersion: string };
  return { version: Version, apiVersion: ApiVersion };
}
