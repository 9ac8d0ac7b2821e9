import {
  Activity,
  ArrowDown,
  ArrowUp,
  BadgeCheck,
  ChartLine,
  Check,
  ChevronLeft,
  Command,
  Copy,
  DatabaseBackup,
  ExternalLink,
  Flag,
  FolderTree,
  Gauge,
  GripVertical,
  type IconNode,
  Inbox,
  KeyRound,
  LayoutDashboard,
  Lock,
  LogOut,
  Monitor,
  Moon,
  Pencil,
  Plus,
  RefreshCw,
  Rocket,
  RotateCcw,
  ScrollText,
  Search,
  Send,
  Settings,
  Sun,
  Terminal,
  Trash2,
  TriangleAlert,
  Users,
  X,
} from "lucide";
import { h } from "preact";

const ICONS = {
  alert: TriangleAlert,
  audit: ScrollText,
  back: ChevronLeft,
  backups: DatabaseBackup,
  catch: Inbox,
  check: Check,
  close: X,
  command: Command,
  copy: Copy,
  curl: Terminal,
  customers: Users,
  dark: Moon,
  delete: Trash2,
  down: ArrowDown,
  drag: GripVertical,
  flags: Flag,
  keys: KeyRound,
  light: Sun,
  link: ExternalLink,
  locks: Lock,
  logout: LogOut,
  meters: Gauge,
  metrics: ChartLine,
  monitors: Activity,
  new: Plus,
  notary: BadgeCheck,
  overview: LayoutDashboard,
  projects: FolderTree,
  relay: Send,
  reload: RefreshCw,
  rename: Pencil,
  search: Search,
  settings: Settings,
  start: Rocket,
  up: ArrowUp,
  system: Monitor,
  undo: RotateCcw,
} satisfies Record<string, IconNode>;

/** Name of an icon. */
export type IconName = keyof typeof ICONS;

/** An icon. Screen readers skip it: it always comes with text. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      {ICONS[name].map(([tag, attributes]) => h(tag, attributes))}
    </svg>
  );
}
