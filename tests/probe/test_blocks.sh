#!/bin/sh
# Random code with accesses in it, as tests/thread asks it of DynamoRIO.
# ctest: release only
RACE_ENGINE=probe exec "$RACE_SOURCE/tests/thread/test_blocks.sh"
