// The theme before the first paint: the address, then the reader's choice, then the system.
const asked = /[?&]theme=(light|dark)/.exec(location.hash)?.[1];
let kept: string | null = null;
try {
  kept = localStorage.getItem("assay-theme");
} catch {
  // storage may be forbidden; the system decides
}
document.documentElement.dataset.theme =
  asked ?? kept ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
export {};
