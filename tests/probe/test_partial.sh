#!/bin/sh
# What library functions read, as tests/thread asks it of DynamoRIO.
# ctest: release only
RACE_ENGINE=probe exec "$RACE_SOURCE/tests/thread/test_partial.sh"
