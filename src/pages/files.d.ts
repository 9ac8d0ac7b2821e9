/** Files imported `with { type: "file" }` are their paths: on the disk, or within the executable. */
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
/** What `scripts/dashboard.ts` has built. */
declare module "*/build/dashboard/files.js" {
  export const FILES: readonly { readonly name: string; readonly path: string }[];
}
/** What `scripts/template.ts` has made. */
declare module "*/build/template/ninefold.db" {
  const path: string;
  export default path;
}
/** Imported `with { type: "text" }`: its text. */
declare module "*/status.css" {
  const text: string;
  export default text;
}
