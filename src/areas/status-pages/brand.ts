import { html } from "../../kernel/data/markup.ts";
import { invalidField } from "../../kernel/errors.ts";
import { LOGO_BYTES_MAX, type PageSettings } from "./schema.ts";

/** The color of a page that has none. */
const DEFAULT_COLOR = "#0f766e";
const LOGO_PREFIX = /^data:(image\/(?:png|jpeg|webp|svg\+xml));base64,/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** An image as it is served. */
export interface Icon {
  readonly type: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/**
 * Checks the fields of a page's appearance that a schema cannot express.
 * @throws ApiError `validation_error` for a logo that is no image of a known type or too large, and for a website without http
 */
export function assertBrand({ logo = null, website_url = null }: Partial<PageSettings>): void {
  if (logo !== null) {
    const bytes = logoOf(logo)?.bytes.length ?? 0;
    if (bytes === 0)
      throw invalidField(
        "logo",
        "must be a base64 data URI of a PNG, JPEG, WebP or SVG image: data:image/png;base64,…",
      );
    if (bytes > LOGO_BYTES_MAX)
      throw invalidField(
        "logo",
        `must be at most ${LOGO_BYTES_MAX / 1024} KiB; this image has ${bytes} bytes`,
      );
  }
  if (website_url !== null && !/^https?:$/.test(URL.parse(website_url)?.protocol ?? ""))
    throw invalidField("website_url", "must be a URL that starts with https:// or http://");
}

/** The logo of a page, or the first letter of its title on its color. */
export function iconOf({ title, logo, color }: Pick<PageSettings, "title" | "logo" | "color">): Icon {
  const uploaded = logo === null ? null : logoOf(logo);
  return (
    uploaded ?? {
      type: "image/svg+xml",
      bytes: new TextEncoder().encode(letterIcon(title, color ?? DEFAULT_COLOR)),
    }
  );
}

/** Null for a text that is no data URI of an image. */
function logoOf(logo: string): Icon | null {
  const [prefix, type] = LOGO_PREFIX.exec(logo) ?? [];
  if (prefix === undefined || type === undefined) return null;
  const base64 = logo.slice(prefix.length);
  if (base64.length % 4 !== 0 || !BASE64.test(base64)) return null;
  return { type, bytes: new Uint8Array(Buffer.from(base64, "base64")) };
}

function letterIcon(title: string, color: string): string {
  const [letter = ""] = title.trim().toUpperCase();
  return html`<svg xmlns="http://www.w3.org/2000/svg" width="64" height="64" viewBox="0 0 64 64"><rect width="64" height="64" rx="12" fill="${color}"/><text x="32" y="44" text-anchor="middle" font-family="system-ui,sans-serif" font-size="34" font-weight="700" fill="${isLight(color) ? "#1f2328" : "#ffffff"}">${letter}</text></svg>
`.text;
}

/** Whether dark text is easier to read on a color, by its relative luminance (WCAG 2.2). */
function isLight(color: string): boolean {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179;
}
