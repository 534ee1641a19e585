import { render } from "preact";
import { App } from "./app";
import type { View } from "./app";
import { AccuracyView } from "./views/accuracy";
import { BookView } from "./views/book";
import { DesignView } from "./views/design";
import { MatrixView } from "./views/matrix";
import { NetworkView } from "./views/network";
import { PlanView } from "./views/plan";
import { ProfileView } from "./views/profile";
import { RooflineView } from "./views/roofline";
import { ServeView } from "./views/serve";
import { ShardingView } from "./views/sharding";

const views: readonly View[] = [
  { id: "plan", name: "Plan", Body: PlanView },
  { id: "serve", name: "Serve", Body: ServeView },
  { id: "roofline", name: "Roofline", Body: RooflineView },
  { id: "sharding", name: "Sharding", Body: ShardingView },
  { id: "network", name: "Network", Body: NetworkView },
  { id: "matrix", name: "Matrix unit", Body: MatrixView },
  { id: "design", name: "Design", Body: DesignView },
  { id: "profile", name: "Profile", Body: ProfileView },
  { id: "accuracy", name: "Accuracy", Body: AccuracyView },
  { id: "book", name: "Book", Body: BookView },
];
render(<App views={views} />, document.getElementById("app")!);
