#!/bin/sh
# Every sample, as tests/thread asks it of DynamoRIO.
# ctest: release only
RACE_ENGINE=probe exec "$RACE_SOURCE/tests/thread/test_samples.sh"
