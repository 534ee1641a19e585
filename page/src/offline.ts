// The service worker of a folder of files: keeps the page and its engine, so that both work without a network. What is on
// the network goes first, so that page and engine are always of one version.
export {};
interface Lasting extends Event {
  waitUntil(work: Promise<unknown>): void;
}
interface Fetching extends Lasting {
  readonly request: globalThis.Request;
  respondWith(response: Promise<Response>): void;
}

const store = "assay";
const files = [
  "./",
  "app.js",
  "theme.js",
  "style.css",
  "icon.svg",
  "manifest.webmanifest",
  "fonts/inter-regular.woff2",
  "fonts/inter-medium.woff2",
  "fonts/inter-semibold.woff2",
  "fonts/jetbrains-mono-regular.woff2",
  "engine_worker.js",
  "engine.js",
  "engine.wasm",
];
self.addEventListener("install", (event) =>
  (event as Lasting).waitUntil(caches.open(store).then((cache) => cache.addAll(files))),
);
self.addEventListener("fetch", (event) => {
  const { request } = event as Fetching;
  if (request.method !== "GET" || new URL(request.url).origin !== location.origin) return;
  (event as Fetching).respondWith(
    fetch(request).then(
      (response) => {
        const copy = response.clone();
        if (response.ok) (event as Fetching).waitUntil(caches.open(store).then((cache) => cache.put(request, copy)));
        return response;
      },
      async () => (await caches.match(request, { ignoreSearch: true })) ?? Response.error(),
    ),
  );
});
