#include "apps/cli.h"

int main(int argc, char** argv) { return deepinfer::RunCommandLine(argc, argv); }
