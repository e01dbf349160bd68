mod above;
mod below;

struct Shared;
