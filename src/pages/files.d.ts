/** Files imported with `type: "file"` resolve to their path: on disk, or within the executable. */
declare module "swagger-ui-dist/*" {
  const path: string;
  export default path;
}
declare module "*/page.js" {
  const path: string;
  export default path;
}
declare module "*/page.css" {
  const path: string;
  export default path;
}
declare module "*/page.html" {
  const path: string;
  export default path;
}
declare module "*/guides.css" {
  const path: string;
  export default path;
}
declare module "*/guides.js" {
  const path: string;
  export default path;
}
/** Output of `scripts/guides.ts` and `scripts/template.ts`. */
declare module "*.bin" {
  const path: string;
  export default path;
}
/** Output of `scripts/licenses.ts`. */
declare module "*/build/licenses/licenses.txt" {
  const path: string;
  export default path;
}
/** Output of `scripts/dashboard.ts`. */
declare module "*/build/dashboard/files.js" {
  export const FILES: readonly { readonly name: string; readonly path: string }[];
}
/** The same of the portal. */
declare module "*/build/portal/files.js" {
  export const FILES: readonly { readonly name: string; readonly path: string }[];
}
/** Files imported with `type: "text"` resolve to their text. */
declare module "*/status.css" {
  const text: string;
  export default text;
}
