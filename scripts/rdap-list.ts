// Renews the built-in list of RDAP servers; see scripts/rdap-list.
import { join } from "node:path";
import { renewRdapList } from "./releases/rdap-list.ts";

const FILE = join(import.meta.dir, "..", "src", "areas", "monitors", "registry", "iana-dns.json");
const IANA_URL = "https://data.iana.org/rdap/dns.json";

console.log(await renewRdapList(FILE, process.argv[2] ?? IANA_URL));
